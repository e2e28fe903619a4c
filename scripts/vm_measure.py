#!/usr/bin/env python3
"""Latencies on a PREEMPT_RT kernel with SocketCAN, in guest time that counts instructions: the same on every host.

    scripts/vm_measure.py [--out FILE] [--seconds 60] [--only NAME,...] [--timeout 2700]

Names: rig, cyclictest, reaction_echo, reaction_socket, reaction_full, rates, restbus, io, io_faults, setup_host,
clients; only by name: interfaces (all rigs of makers, an hour on a busy computer), or one of them (desk_j1939 ...),
telemetry, mounts. Prints a table and writes JSON.
Exit status: 0 measured and no tick missed; 1 something failed or a tick was missed (which is named); 77 not available
here, with the reason.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from vmtools.errors import SKIPPED, Unavailable
from vmtools.machine import Options, prepare, run
from vmtools.product import ROOT, c_programs, files
from vmtools.table import table

#: what pytest imports when it runs
_TESTS = """
import contextlib, io, pytest
with contextlib.redirect_stdout(io.StringIO()), tempfile.TemporaryDirectory() as t:
    test = Path(t) / "test_nothing.py"
    test.write_text("def test_nothing(tmp_path): assert tmp_path.exists()")
    pytest.main(["-q", "-p", "no:cacheprovider", "-c", "/dev/null", f"--junitxml={t}/x.xml", str(test)])
"""


def measure(out: Path, seconds: float = 60.0, only: str = "", timeout_s: float = 2700.0) -> dict[str, Any]:
    """Boot the machine once, measure, and return what is in `out` then. Unavailable says why that cannot be."""
    prepare("rt")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.unlink(missing_ok=True)
    programs = c_programs(ROOT / "build" / "vm")
    held = [*files(_TESTS), *programs.iterdir()]
    command = [
        sys.executable,
        str(ROOT / "rt_tests" / "vm" / "vm_inside.py"),
        str(out),
        str(programs),
        "--seconds",
        str(seconds),
    ]
    options = Options(
        icount=0, sealed=True, in_memory=tuple(held), shares=(str(out.parent),), timeout_s=timeout_s, memory_MiB=2048
    )
    ended = run([*command, "--only", only] if only else command, options)
    found = json.loads(out.read_text()) if out.exists() else {}
    found["machine"] = {"status": ended.status, "wall_s": round(ended.wall_s, 1), "guest_s": ended.end_s, "icount": 0}
    out.write_text(json.dumps(found, indent=1) + "\n")
    return dict(found)


def missed_ticks(found: dict[str, Any], place: str = "") -> list[str]:
    """Where ticks were missed. Rates that were tried and found too high stand in a list and are not meant."""
    wrong = []
    for name, value in found.items():
        if isinstance(value, dict):
            wrong += missed_ticks(value, f"{place}{name}: ")
        elif name == "missed" and value != 0:
            wrong.append(f"{place}{value} of {found.get('ticks', '?')} ticks missed")
    return wrong


def main() -> int:
    """Entry."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "vm-results" / "measure.json")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--only", default="")
    parser.add_argument("--timeout", type=float, default=2700.0, metavar="S", help="of the host's time")
    given = parser.parse_args()
    try:
        found = measure(given.out.resolve(), given.seconds, given.only, given.timeout)
    except Unavailable as reason:
        print(f"vm: not available here: {reason}", file=sys.stderr)
        return SKIPPED
    print(table(found))
    wrong = missed_ticks(found)
    for line in wrong:
        print(f"vm: {line}", file=sys.stderr)
    return 0 if found["machine"]["status"] == 0 and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
