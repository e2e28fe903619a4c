"""pytest in processes that are ready: one for each copy of the checkout, forked from one that has imported what no
error is planted in.

A test of one millisecond costs some two seconds in a fresh interpreter and a quarter of that here. The process that is
forked imports the packages, the kernels and core/; hil/ is imported behind the fork, with the error.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pkgutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGES = """
    _pytest.assertion.rewrite asammdf can cantools coverage hypothesis lark matplotlib.pyplot msgpack numpy pandas
    pyarrow.parquet pydantic pytest rich.console scipy.integrate scipy.interpolate scipy.optimize touched typer
    typer.testing yaml zmq
""".split()
#: a test that waits is given so many times its limit of processor time
WALL = 20.0
#: a process is asked whether it has ended so often [s]
POLL_S = 0.02


class Warm:
    """The process of one copy."""

    def __init__(self, copy: Path) -> None:
        one = {name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")}
        env = {**os.environ, **one, "PYTHONPATH": f"{copy}{os.pathsep}{HERE}", "MPLBACKEND": "agg"}
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "warm.py")], cwd=copy / "rt_tests", env=env, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def pytest(self, tests: Iterable[str], *options: str, limit_s: float) -> tuple[int | None, str, float]:
        """(status of pytest, None where it took too long; what it said; processor time [s], which is what is limited:
        it does not depend on what else the machine does)."""
        assert self.process.stdin is not None and self.process.stdout is not None
        with tempfile.NamedTemporaryFile("r", errors="replace") as said:
            job = {"tests": [*options, *tests], "limit_s": limit_s, "said": said.name}
            self.process.stdin.write(json.dumps(job) + "\n")
            self.process.stdin.flush()
            status, used = json.loads(self.process.stdout.readline())
            return status, said.read(), used


#: the processes of the copies
WARM: dict[Path, Warm] = {}


def run_tests(copy: Path, tests: Iterable[str], *options: str, limit_s: float) -> tuple[int | None, str, float]:
    """Runs tests in a copy; see Warm.pytest."""
    if copy not in WARM:
        WARM[copy] = Warm(copy)
    return WARM[copy].pytest([test.removeprefix("rt_tests/") for test in tests], *options, limit_s=limit_s)


def cpu_s(pid: int) -> float:
    """Processor time of a process and of its children that have ended [s]."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def ready() -> None:
    """Imports what no error is planted in."""
    names = list(PACKAGES)
    for part in ("core", "cython_kernels"):
        package = importlib.import_module(f"torqueloop.{part}")
        found = pkgutil.walk_packages(package.__path__, f"torqueloop.{part}.", onerror=lambda name: None)
        names += [module.name for module in found if not module.name.endswith("__main__")]
    for name in names:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    planted = [name for name in sys.modules if name.startswith("torqueloop.hil")]
    if planted:
        raise SystemExit(f"hil is imported before an error is planted: {planted[:3]}")


def child(job: dict[str, object]) -> None:
    """Runs pytest and ends."""
    import pytest

    os.setsid()
    for number, name in enumerate((os.devnull, str(job["said"]), str(job["said"]))):
        os.dup2(os.open(name, os.O_RDWR | os.O_APPEND), number)
    status: int = 3
    try:
        arguments = ["-c", "../pyproject.toml", "--rootdir", "..", "-q", "--no-header", "--tb=line",
                     "-p", "no:cacheprovider", "-m", "not long and not proof", *job["tests"]]  # type: ignore[misc] # fmt: skip
        status = int(pytest.main(arguments))
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


def waited(pid: int, limit_s: float) -> tuple[int | None, float]:
    """(status of a process, None where it was ended; its processor time [s])."""
    begin = time.monotonic()
    while True:
        time.sleep(POLL_S)
        ended, status, used = os.wait4(pid, os.WNOHANG)
        if ended:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            return os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime
        if cpu_s(pid) > limit_s or time.monotonic() - begin > WALL * limit_s:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            _, _, used = os.wait4(pid, 0)
            return None, used.ru_utime + used.ru_stime


def main() -> None:
    """Answers jobs, a line each, until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    ready()
    for line in sys.stdin:
        job = json.loads(line)
        pid = os.fork()
        if not pid:
            child(job)
        answers.write(json.dumps(waited(pid, job["limit_s"])) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
