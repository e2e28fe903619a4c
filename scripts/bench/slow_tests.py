"""Processor time of the tests: by file, and of the slowest tests.

    python scripts/bench/slow_tests.py [--out build/test_times.jsonl] [--slowest 50] [pytest arguments ...]
    python scripts/bench/slow_tests.py --read build/test_times.jsonl [--before OTHER.jsonl]

Runs pytest (from `rt_tests`, as `scripts/test` does) with this file as a plugin, which reads the processor time of the
worker and of the processes it has waited for around each phase of a test. Other load on the machine changes this less
than seconds of a clock. A fixture that several tests share counts for the first of them; a process that is still
running when its test ends counts for the test that waits for it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
OUT = "TORQUELOOP_TEST_TIMES"

Times = dict[str, dict[str, float]]
_now = [0.0, 0.0]
_found: Times = defaultdict(lambda: {"own": 0.0, "children": 0.0, "wall": 0.0, "setup": 0.0})


def _used() -> list[float]:
    """Processor seconds of this process, and of its children that have ended."""
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return [used.ru_utime + used.ru_stime for used in map(resource.getrusage, whose)]


def pytest_runtest_logstart() -> None:
    """A worker begins a test."""
    _now[:] = _used()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any) -> Iterator[None]:
    """A phase of a test has ended; its report takes the times to the process that collects."""
    report = yield
    used = _used()
    report.cpu = [after - before for after, before in zip(used, _now, strict=True)]
    _now[:] = used
    return report


def pytest_runtest_logreport(report: Any) -> None:
    """Add the times of a phase to those of its test."""
    test = _found[report.nodeid]
    own, children = getattr(report, "cpu", (0.0, 0.0))
    test["own"] += own
    test["children"] += children
    test["wall"] += report.duration
    test["setup"] += (own + children) * (report.when == "setup")
    if report.when == "teardown" and OUT in os.environ and "PYTEST_XDIST_WORKER" not in os.environ:
        with open(os.environ[OUT], "a", encoding="utf-8") as file:
            print(json.dumps({report.nodeid: test}), file=file)


def read(path: Path) -> Times:
    """Times that were written: a line for each test that has ended."""
    times: Times = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        times.update(json.loads(line))
    return times


def _cpu(test: dict[str, float]) -> float:
    return test["own"] + test["children"]


def table(times: Times, slowest: int, before: Times) -> str:
    """Sums by file and the slowest tests, in processor seconds, as tables of Markdown."""
    files: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0, 0.0])
    for which, known in ((0, times), (3, before)):
        for name, test in known.items():
            row = files[name.partition("::")[0].removeprefix("rt_tests/")]
            row[which] += _cpu(test)
            if not which:
                row[1] += test["children"]
                row[2] += 1
    lines = ["| file | processor s | of it in other processes | tests | before |", "|---|---|---|---|---|"]
    ordered = sorted(files.items(), key=lambda item: -item[1][0])
    ordered.append(("all", [sum(column) for column in zip(*files.values(), strict=True)]))
    for file, (cpu, children, count, was) in [*ordered[:-1][:slowest], ordered[-1]]:
        lines.append(f"| {file} | {cpu:.1f} | {children:.1f} | {count:.0f} | {was:.1f} |")
    lines += ["", "| test | processor s | of it in fixtures | in other processes | seconds of the clock |"]
    lines.append("|---|---|---|---|---|")
    for name, test in sorted(times.items(), key=lambda item: -_cpu(item[1]))[:slowest]:
        row = (_cpu(test), test["setup"], test["children"], test["wall"])
        lines.append(f"| {name.removeprefix('rt_tests/')} | " + " | ".join(f"{value:.1f}" for value in row) + " |")
    return "\n".join(lines)


def main() -> int:
    """Run pytest, or read what it has written, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "test_times.jsonl")
    parser.add_argument("--read", type=Path)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--slowest", type=int, default=50)
    args, rest = parser.parse_known_args()
    status = 0
    if not args.read:
        args.out.parent.mkdir(exist_ok=True)
        args.out.unlink(missing_ok=True)
        search = os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, OUT: str(args.out.resolve()), "PYTHONPATH": search}
        command = [sys.executable, "-m", "pytest", "-c", "../pyproject.toml", "--rootdir", "..", "-p", "slow_tests"]
        status = subprocess.run([*command, *rest], cwd=ROOT / "rt_tests", env=environment).returncode
    print(table(read(args.read or args.out), args.slowest, read(args.before) if args.before else {}))
    return status


if __name__ == "__main__":
    sys.exit(main())
