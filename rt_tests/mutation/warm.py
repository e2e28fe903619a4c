"""pytest in processes that are ready: they belong to one copy of the checkout and fork a child for each job.

Those of kind `hil` and `core` have imported what no error is planted in: the libraries, the kernels and, of the
former, core/. Their children import the rest with the error, which is right for every error and takes some seconds.
The process of kind `collected` has imported everything and collected all tests. Its children take the code of the
functions that the error changes over from the disk, which takes a tenth of a second and is right for errors in
functions that do not run during the import. The one of kind `measuring` is a collected one with coverage; its children
run a test file each.
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
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PACKAGES = """
    _pytest.assertion.rewrite asammdf can cantools coverage hypothesis lark matplotlib.pyplot msgpack numpy pandas
    pyarrow.parquet pydantic pytest rich.console scipy.integrate scipy.interpolate scipy.optimize typer typer.testing
    yaml zmq
""".split()
#: a test that waits is given so many times its limit of processor time
WALL = 10.0
#: a process is asked whether it has ended so often [s]
POLL_S = 0.02
#: status of a child that cannot take the code over: the error changes what a function needs of those around it
NEEDS_IMPORT = 100


class Warm:
    """The process of one copy."""

    def __init__(self, copy: Path, kind: str) -> None:
        one = {name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")}
        env = {**os.environ, **one, "PYTHONPATH": f"{copy}{os.pathsep}{HERE}", "MPLBACKEND": "agg"}
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "warm.py"), kind], cwd=copy / "rt_tests", env=env, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def answer(self, job: dict[str, Any], limit_s: float) -> tuple[int | None, str, float]:
        """(status of the child, None where it took too long; what it said; processor time [s], which is what is
        limited: it does not depend on what else the machine does)."""
        assert self.process.stdin is not None and self.process.stdout is not None
        with tempfile.NamedTemporaryFile("r", errors="replace") as said:
            self.process.stdin.write(json.dumps({**job, "limit_s": limit_s, "said": said.name}) + "\n")
            self.process.stdin.flush()
            status, used = json.loads(self.process.stdout.readline())
            return status, said.read(), used


#: the processes of the copies
WARM: dict[tuple[Path, str], Warm] = {}


def run_job(copy: Path, kind: str, job: dict[str, Any], limit_s: float) -> tuple[int | None, str, float]:
    """Runs a job in a child of the process of this kind; see Warm.answer."""
    if (copy, kind) not in WARM:
        WARM[copy, kind] = Warm(copy, kind)
    return WARM[copy, kind].answer(job, limit_s)


def stop(copy: Path, kind: str) -> None:
    """Ends a process that is not needed any more."""
    if (warm := WARM.pop((copy, kind), None)) is not None:
        warm.process.communicate()


def cpu_s(pid: int) -> float:
    """Processor time of a process and of its children that have ended [s]."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def ready(parts: list[str]) -> None:
    """Imports the libraries and these packages of ours."""
    names = list(PACKAGES)
    for part in parts:
        package = importlib.import_module(f"torqueloop.{part}")
        found = pkgutil.walk_packages(package.__path__, f"torqueloop.{part}.", onerror=lambda name: None)
        names += [module.name for module in found if not module.name.endswith("__main__")]
    for name in names:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    planted = [n for n in sys.modules if n.split(".")[:2] in (["torqueloop", p] for p in {"core", "hil"} - set(parts))]
    if planted:
        raise SystemExit(f"imported before an error is planted: {planted[:3]}")


#: of pytest, for all kinds
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
        status = int(pytest.main([*OPTIONS, "-x", *(test.removeprefix("rt_tests/") for test in job["tests"])]))
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


class Collected:
    """A plugin of pytest: after the collection it answers jobs instead of running the tests."""

    def __init__(self, measured: Any) -> None:
        self.measured = measured
        self.sources = {
            path: path.read_text(encoding="utf-8") for p in ("core", "hil") for path in Path("..", p).rglob("*.py")
        }

    def pytest_collectstart(self, collector: Any) -> None:
        if self.measured and collector.nodeid.endswith(".py"):
            self.measured.switch_context(collector.nodeid)

    def pytest_runtestloop(self, session: Any) -> bool:
        self.items = {item.nodeid: item for item in session.items}
        self.collection = self.lines_run() if self.measured else {}
        objects = gc.get_objects()
        self.functions = [f for f in objects if isinstance(f, types.FunctionType)]
        gc.freeze()
        serve(self.child)
        return True

    def child(self, job: dict[str, Any]) -> None:
        """Runs tests in their order until one fails, or measures a test file, and ends."""
        behind_the_fork(job)
        status = 3
        try:
            if "measure" in job:
                status = self.measure_all(job["measure"], job["at_once"])
            elif self.take_over(Path("..", job["module"])):
                status = self.run(job["tests"])
            else:
                status = NEEDS_IMPORT
        finally:
            os._exit(status)

    def take_over(self, path: Path) -> bool:
        """Gives the functions of a module the code that stands on the disk."""
        now = path.read_text(encoding="utf-8")
        old, new = (functions_of(compile(source, str(path), "exec")) for source in (self.sources[path], now))
        fresh = dict(zip(old, new, strict=True))
        name = "torqueloop." + ".".join(path.relative_to("..").with_suffix("").parts)
        if any(a.co_freevars != b.co_freevars for a, b in fresh.items()):
            return False
        for function in self.functions:
            if function.__module__ == name and function.__code__ in fresh:
                function.__code__ = fresh[function.__code__]
        return True

    def reports(self, tests: list[str]) -> Iterator[tuple[Any, list[Any]]]:
        """Each test, and what its phases came to."""
        from _pytest.runner import runtestprotocol

        items = [self.items[test] for test in tests]
        for item, following in zip_longest(items, items[1:]):
            if self.measured:
                self.measured.switch_context(item.nodeid)
            yield item, runtestprotocol(item, log=False, nextitem=following)

    def run(self, tests: list[str]) -> int:
        """Status as pytest has it; prints what fails."""
        for item, reports in self.reports(tests):
            for report in reports:
                if report.failed:
                    print(f"FAILED {item.nodeid} - {report.longreprtext[-300:]}", flush=True)
                    return 1
        return 0

    def measure_all(self, places: dict[str, str], at_once: int) -> int:
        """Measures test files, each in a process of its own, some at a time, as many of them wait."""
        running = 0
        for name, place in places.items():
            if running == at_once:
                os.wait()
            else:
                running += 1
            if not os.fork():
                self.measure(name, Path(place))
                os._exit(0)
        for _ in range(running):
            os.wait()
        return 0

    def measure(self, name: str, to: Path) -> None:
        """Writes what a test file runs, or the import and the collection."""
        from touched import COLLECTION, FILE_LIMIT_S, digest

        found: dict[str, tuple[float, str]] = {}
        begin = time.process_time()
        tests = [test for test in self.items if test.startswith(f"rt_tests/{name}::")]
        for item, reports in self.reports(tests):
            ended = [report.outcome for report in reports if report.outcome != "passed"]
            found[item.nodeid] = (sum(report.duration for report in reports), (ended or ["passed"])[0])
            if time.process_time() - begin > FILE_LIMIT_S:
                break
        lines = self.collection if name == COLLECTION else self.lines_run()
        root = Path.cwd().parent
        digests = {m: digest(root / m) for m in (f"rt_tests/{name}", *lines)}
        fresh = to.with_suffix(".new")
        fresh.write_text(json.dumps({"digests": digests, "tests": found, "lines": lines}))
        fresh.replace(to)

    def lines_run(self) -> dict[str, dict[str, str]]:
        """Module -> context -> bits of the lines."""
        self.measured.switch_context("")
        data, made = self.measured.get_data(), {}
        for file in data.measured_files():
            bits: dict[str, int] = {}
            for line, contexts in data.contexts_by_lineno(file).items():
                for context in contexts:
                    bits[context] = bits.get(context, 0) | 1 << line
            made[str(Path(file).relative_to(Path.cwd().parent))] = {c: f"{mask:x}" for c, mask in bits.items()}
        return made


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
    if kind in ("hil", "core"):
        ready(["cython_kernels"] if kind == "core" else ["cython_kernels", "core"])
        return serve(importing)
    import pytest

    measured = None
    if kind == "measuring":
        import coverage

        root = Path.cwd().parent
        measured = coverage.Coverage(data_file=None, config_file=False, include=[f"{root}/core/*", f"{root}/hil/*"])
        measured.start()
    ready(["cython_kernels", "core", "hil"])
    folders = ["unit", "property", "reference", "hil"]
    pytest.main([*OPTIONS, "-s", "--assert=plain", "-p", "no:xdist", *folders], plugins=[Collected(measured)])


if __name__ == "__main__":
    JOBS, ANSWERS = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    main(sys.argv[1])
