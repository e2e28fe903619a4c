"""Instructions that the steps of a kernel take, counted by callgrind (valgrind): they repeat exactly on a busy machine.

Each run is made in a process forked from one worker under callgrind and leaves a profile of its own; only what happens
inside `advance` of the generic kernel is counted. Used by bench_size.py.
"""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from torqueloop.cython_kernels.model import KernelModel, KernelState

#: arrays of the model, step in s, state at the start, inputs of the stretch
Job = tuple[dict[str, Any], float, bytes, Any]
#: instructions by function (its own, without what it calls)
Profile = dict[str, float]


class CountingError(Exception):
    """Instructions cannot be counted here; the text says why."""


def worker(path: str) -> int:
    """Under callgrind: each job in two forked processes, once over its stretch and twice."""
    for number, (arrays, h, start, inputs) in enumerate(pickle.loads(Path(path).read_bytes())):
        for passes in (1, 2):
            model = KernelModel(arrays, h, "generic")
            state = KernelState(model)
            child = os.fork()
            if child == 0:
                for _ in range(passes):
                    state.from_bytes(start)
                    model.run(state, inputs)
                os._exit(0)
            os.waitpid(child, 0)
            print(f"{number} {child}", flush=True)
    return 0


def read_profile(path: Path) -> Profile:
    """A callgrind profile: lines of costs after fn=; the line after calls= is the cost of the callee and left out."""
    names: dict[str, str] = {}
    own: Profile = {}
    current, inclusive = "", False
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith(("fn=", "cfn=")):
            number, _, name = line.split("=", 1)[1].partition(" ")
            if name:
                names[number] = short_name(name)
            if line.startswith("fn="):
                current = names[number]
        elif line.startswith("calls="):
            inclusive = True
        elif line[:1] in "0123456789+-*" and " " in line:
            if not inclusive:
                own[current] = own.get(current, 0.0) + float(line.split()[1])
            inclusive = False
    return own


def short_name(symbol: str) -> str:
    """__pyx_f_10torqueloop_14cython_kernels_7generic_trial2.part.0 -> trial2"""
    name = symbol.split("'")[0].split(".")[0]
    for module in ("generic_", "locks_", "model_"):
        if name.startswith("__pyx_") and module in name:
            return name.split(module, 1)[1]
    return name


def instruction_counts(jobs: Sequence[Job], progress: Callable[[], None]) -> list[tuple[Profile, Profile]]:
    """For each job the profiles of one pass over its stretch and of two; progress is called after each of them."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise CountingError("valgrind is not installed")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "jobs.pickle"
        path.write_bytes(pickle.dumps(list(jobs)))
        command = [
            valgrind, "--tool=callgrind", "--quiet", "--collect-atstart=no", "--toggle-collect=*generic_advance",
            f"--callgrind-out-file={folder}/profile.%p", sys.executable, str(Path(__file__).resolve()), str(path),
        ]  # fmt: skip
        found: dict[int, list[Profile]] = {}
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None and process.stderr is not None
            for line in process.stdout:
                number, child = map(int, line.split())
                profile = Path(folder) / f"profile.{child}"
                found.setdefault(number, []).append(read_profile(profile))
                profile.unlink()
                progress()
            errors = process.stderr.read()
        if process.returncode or len(found) != len(jobs):
            raise CountingError(f"valgrind ended with {process.returncode}: {errors.strip()[-300:]}")
    pairs = [(once, twice) for _, (once, twice) in sorted(found.items())]
    if any(not once or sum(twice.values()) <= sum(once.values()) for once, twice in pairs):
        raise CountingError("callgrind saw no step: the kernels have lost their symbols")
    return pairs


if __name__ == "__main__":
    raise SystemExit(worker(sys.argv[1]))
