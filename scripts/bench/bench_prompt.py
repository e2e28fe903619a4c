"""Time from Enter to the next prompt, beside `python -c pass`, and the imports that take most of it.

    python scripts/bench/bench_prompt.py [--rounds 5] [--imports 10] [COMMAND ...]

Each command runs once to warm the caches (byte code of all modules, files), then `--rounds` times; the least counts.
`s` is what a user waits for; `cpu` is processor time of the command and its children, which other load changes less;
`ratio` is that beside an interpreter that does nothing. Imports: own time of a module, by `-X importtime`.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = (
    "--help",
    "gearbox zf_4hp22",
    "check configs/rigs/desk_4hp22.toml",
    "run desk_4hp22 --clock virtual --no-html",
    "run desk_4hp22 --clock virtual",
)
IMPORT = re.compile(r"import time:\s+(\d+) \|\s+(\d+) \|\s+(\S+)")


def timed(arguments: list[str], folder: str, environment: dict[str, str]) -> tuple[float, float, str]:
    """Seconds and processor seconds of `python ARGUMENTS`, and what it wrote to standard error."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    lasted, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{shlex.join(arguments)}: exit status {done.returncode}\n{done.stderr.decode()[-2000:]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return lasted, cpu, done.stderr.decode()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--imports", type=int, default=10)
    parser.add_argument("commands", nargs="*", default=COMMANDS, metavar="COMMAND")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "configs").symlink_to(ROOT / "configs")
        # byte code is kept, whatever the caller's environment says of it
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": f"{folder}/byte_code"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        nothing = 0.0
        for words in ("", *args.commands):
            command = ["-m", "torqueloop.hil.cli", *shlex.split(words)] if words else ["-c", "pass"]
            timed(command, folder, environment)
            measured = [timed(command, folder, environment)[:2] for _ in range(args.rounds)]
            wall, cpu = (min(column) for column in zip(*measured, strict=True))
            nothing = nothing or cpu
            print(f"{wall:6.2f} s  {cpu:6.2f} s cpu  ratio {cpu / nothing:5.1f}   {words or 'python -c pass'}")
            if words:
                _, _, text = timed(["-X", "importtime", *command], folder, environment)
                worst = sorted(((int(own), name) for own, _, name in IMPORT.findall(text)), reverse=True)
                print("        " + ", ".join(f"{name} {own / 1e3:.0f} ms" for own, name in worst[: args.imports]))


if __name__ == "__main__":
    main()
