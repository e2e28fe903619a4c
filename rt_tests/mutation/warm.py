"""pytest in processes that are ready: two for each copy of the checkout, which fork a child for each error.

One has imported what no error is planted in: the packages, the kernels and core/. Its children import hil/ with the
error, which is right for every error and takes some two seconds. The other one has imported hil/ and collected all
tests as well. Its children take the code of the functions that the error changes over from the disk, which takes a
tenth of a second and is right for errors in functions that do not run during the import.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import signal
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

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

    def __init__(self, copy: Path, kind: str) -> None:
        one = {name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")}
        env = {**os.environ, **one, "PYTHONPATH": f"{copy}{os.pathsep}{HERE}", "MPLBACKEND": "agg"}
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "warm.py"), kind], cwd=copy / "rt_tests", env=env, text=True,
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
WARM: dict[tuple[Path, str], Warm] = {}


def run_tests(
    copy: Path, tests: Iterable[str], *options: str, limit_s: float, kind: str = "importing"
) -> tuple[int | None, str, float]:
    """Runs tests in a copy; see Warm.pytest. kind: whose children run them, `importing` or `collected`."""
    if (copy, kind) not in WARM:
        WARM[copy, kind] = Warm(copy, kind)
    return WARM[copy, kind].pytest([test.removeprefix("rt_tests/") for test in tests], *options, limit_s=limit_s)


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


#: of pytest, for both kinds
OPTIONS = ["-c", "../pyproject.toml", "--rootdir", "..", "-q", "--no-header", "--tb=line", "-p", "no:cacheprovider",
           "-m", "not long and not proof"]  # fmt: skip


def behind_the_fork(job: dict[str, Any]) -> None:
    """A process group of its own, whose output goes to the file of the job."""
    os.setsid()
    for number, name in enumerate((os.devnull, job["said"], job["said"])):
        os.dup2(os.open(name, os.O_RDWR | os.O_APPEND), number)


def importing(job: dict[str, Any]) -> None:
    """Runs pytest and ends."""
    import pytest

    behind_the_fork(job)
    status: int = 3
    try:
        status = int(pytest.main([*OPTIONS, *job["tests"]]))
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


class Collected:
    """A plugin of pytest: after the collection it answers jobs instead of running the tests."""

    def __init__(self) -> None:
        self.sources = {path: path.read_text(encoding="utf-8") for path in Path("../hil").rglob("*.py")}

    def pytest_runtestloop(self, session: Any) -> bool:
        self.items = {item.nodeid.removeprefix("rt_tests/"): item for item in session.items}
        hil = "torqueloop.hil"
        objects = gc.get_objects()
        self.functions = [f for f in objects if isinstance(f, types.FunctionType) and f"{f.__module__}".startswith(hil)]
        gc.freeze()
        serve(self.child)
        return True

    def child(self, job: dict[str, Any]) -> None:
        """Runs tests in their order until one fails, and ends."""
        behind_the_fork(job)
        status = 3
        try:
            for path, was in self.sources.items():
                if (now := path.read_text(encoding="utf-8")) != was:
                    self.take_over(path, was, now)
            status = self.run([test for test in job["tests"] if test[0] != "-"])
        finally:
            os._exit(status)

    def take_over(self, path: Path, was: str, now: str) -> None:
        """Gives the functions of a module the code that stands on the disk."""
        name = "torqueloop." + ".".join(path.relative_to("..").with_suffix("").parts)
        old, new = (functions_of(compile(source, str(path), "exec")) for source in (was, now))
        fresh = dict(zip([(c.co_qualname, c.co_firstlineno) for c in old], new, strict=True))
        for function in self.functions:
            code = function.__code__
            key = (code.co_qualname, code.co_firstlineno)
            if function.__module__ == name and key in fresh and code.co_filename.endswith(path.name):
                function.__code__ = fresh[key]

    def run(self, tests: list[str]) -> int:
        """Status as pytest has it; prints what fails."""
        from _pytest.runner import runtestprotocol

        items = [self.items[test] for test in tests]
        for item, following in zip(items, [*items[1:], None], strict=True):
            for report in runtestprotocol(item, log=False, nextitem=following):
                if report.failed:
                    print(f"FAILED {item.nodeid} - {report.longreprtext[-300:]}", flush=True)
                    return 1
        return 0


def functions_of(code: types.CodeType) -> list[types.CodeType]:
    """All code objects inside one, in their order."""
    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return [found for c in inner for found in (c, *functions_of(c))]


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


def serve(child: Callable[[dict[str, Any]], None]) -> None:
    """Answers jobs, a line each, until the input ends."""
    for line in JOBS:
        job = json.loads(line)
        pid = os.fork()
        if not pid:
            child(job)
        ANSWERS.write(json.dumps(waited(pid, job["limit_s"])) + "\n")
        ANSWERS.flush()


def main(kind: str) -> None:
    """See above."""
    ready()
    if kind == "importing":
        serve(importing)
    else:
        import pytest

        package = importlib.import_module("torqueloop.hil")
        for module in pkgutil.walk_packages(package.__path__, "torqueloop.hil.", onerror=lambda name: None):
            if not module.name.endswith("__main__"):
                with contextlib.suppress(Exception):
                    importlib.import_module(module.name)
        pytest.main([*OPTIONS, "-s", "--assert=plain", "-p", "no:xdist", "unit", "hil"], plugins=[Collected()])


if __name__ == "__main__":
    JOBS, ANSWERS = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    main(sys.argv[1])
