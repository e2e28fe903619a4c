"""Which test runs which line of hil/: a plugin of pytest that records it, and the answer for a mutated line.

Each test file runs once in a process of its own, with coverage's contexts: one for each test, and the empty one for
what runs while modules are imported. What a fixture or a cache shares is booked to the first test that asks for it, so
all tests of a file that runs a line are candidates; those that run it themselves come first.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from warm import run_tests

#: a test file that takes more processor time is left out [s]
FILE_LIMIT_S = 120.0
#: golden runs: second definitions of what is read; their tests look at runs that are made once
GOLDEN = "hil/test_golden_"
#: results of one test that other tests of its file look at
SHARES = re.compile(r"""scope=["'](?:module|class|package|session)|^@(?:functools\.)?(?:lru_)?cache""", re.M)


# --- the plugin -------------------------------------------------------------------------------------------------------


def pytest_addoption(parser: Any) -> None:
    parser.addoption("--touched", default="", help="file that takes which test runs which line")


class Recorder:
    """Records lines of hil/ by test, and how each test went."""

    def __init__(self, path: Path) -> None:
        import coverage

        self.path, self.root = path, Path.cwd().parent
        self.tests: dict[str, list[Any]] = {}
        self.measured = coverage.Coverage(data_file=None, config_file=False, include=[f"{self.root}/hil/*"])
        self.measured.start()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.measured.switch_context(nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        entry = self.tests.setdefault(report.nodeid, [0.0, "passed"])
        entry[0] += report.duration
        if report.outcome != "passed":
            entry[1] = report.outcome

    def pytest_sessionfinish(self) -> None:
        self.measured.stop()
        data, lines = self.measured.get_data(), {}
        for file in data.measured_files():
            lines[str(Path(file).relative_to(self.root))] = data.contexts_by_lineno(file)
        self.path.write_text(json.dumps({"tests": self.tests, "lines": lines}))


def pytest_configure(config: Any) -> None:
    if path := config.getoption("--touched"):
        config.pluginmanager.register(Recorder(Path(path)))


# --- running ----------------------------------------------------------------------------------------------------------


def digest(path: Path) -> str:
    """Of a file that may be gone."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path.is_file() else ""


class Sound:
    """Tests that are known to pass, and to fail, without an error."""

    def __init__(self) -> None:
        self.passes: set[str] = set()
        self.fails: set[str] = set()

    def has(self, copy: Path, test: str, kind: str) -> bool:
        """A test passes in a copy as it is."""
        if test not in self.passes | self.fails:
            status, *_ = run_tests(copy, [test], limit_s=FILE_LIMIT_S, kind=kind)
            (self.fails if status == 1 else self.passes).add(test)
        return test in self.passes


@dataclass(frozen=True)
class TestFile:
    """What a test file runs."""

    name: str
    #: test -> (duration [s], outcome)
    tests: dict[str, tuple[float, str]]
    #: module -> line -> tests; "" for what runs during the import
    lines: dict[str, dict[str, list[str]]]


#: one file is measured at a time, for all copies
MEASURING = threading.Lock()


def measured(copy: Path, store: Path, name: str, module: str, known: bool = False) -> TestFile | None:
    """What a test file runs; it is not run again while it and a module are as they were. None: too slow, or not known
    where only what is known is asked for."""
    target = _place(store, name)
    with MEASURING:
        if (found := _known(copy, target, name, module)) is None and not known:
            store.mkdir(parents=True, exist_ok=True)
            fresh = target.with_suffix(f".{os.getpid()}")
            status, said, _ = run_tests(copy, [name], "-p", "touched", f"--touched={fresh}", limit_s=FILE_LIMIT_S)
            if status not in (None, 0, 1, 5):
                raise SystemExit(f"{name} cannot be run without an error: {said[-2000:]}")
            data = json.loads(fresh.read_text()) if status is not None else {"tests": {}, "lines": {}}
            data["digests"] = {m: digest(copy / m) for m in (f"rt_tests/{name}", *data["lines"])}
            fresh.write_text(json.dumps(data))
            fresh.replace(target)
            print(f"    measured {name}: {'too slow' if status is None else status}", flush=True)
            found = _known(copy, target, name, module)
    return found if found and found.tests else None


def stored(copy: Path, store: Path, module: str) -> list[str]:
    """Test files of which it is known what they run of a module."""
    names = sorted(path.stem.replace("+", "/") for path in store.glob("*.json"))
    return [name for name in names if _known(copy, _place(store, name), name, module) is not None]


def _place(store: Path, name: str) -> Path:
    return store / f"{name.replace('/', '+')}.json"


def _known(root: Path, file: Path, name: str, module: str) -> TestFile | None:
    """What is known of a test file, if it and a module are as they were: that other modules have changed moves no line
    of this one."""
    if not file.exists():
        return None
    digests, found = _read(file, file.stat().st_mtime_ns)
    if any(digest(root / p) != digests[p] for p in (f"rt_tests/{name}", module) if p in digests):
        return None
    return found


@cache
def _read(file: Path, at_ns: int) -> tuple[dict[str, str], TestFile]:
    """What was stored of a test file at a time, with the digests of it and of the modules."""
    data = json.loads(file.read_text())
    tests = {n: (s, o) for n, (s, o) in data["tests"].items()}
    return data["digests"], TestFile(file.stem.replace("+", "/"), tests, data["lines"])


# --- choosing ---------------------------------------------------------------------------------------------------------


def statement(code: str, line: int) -> tuple[range, bool]:
    """(lines of the statement a line belongs to, of a compound one its head; it is inside a function)."""
    best, inside = range(line, line + 1), False
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            inside |= isinstance(node, ast.FunctionDef) and line > last
            if node.lineno <= line <= last:
                best = range(node.lineno, last + 1)
    return best, inside


def candidates(
    root: Path, files: list[TestFile], module: str, code: str, line: int
) -> tuple[list[tuple[float, str]], list[tuple[float, str]]]:
    """(tests that run a line, the other tests of files that share results between their tests), each with its time
    [s], the quickest first. Of a line that is part of the import: tests that run any function of its module. Where the
    import or the collection of a file runs a function, all tests of the file may look at what came of it."""
    lines, inside = statement(code, line)
    own: list[tuple[float, str]] = []
    rest: list[tuple[float, str]] = []
    for file in files:
        known = file.lines.get(module, {})
        wanted = [known.get(str(k), []) for k in lines] if inside else list(known.values())
        touching = {test for tests in wanted for test in tests if test}
        if not touching:
            continue
        collected = inside and any("" in tests for tests in wanted)
        shares = collected or file.name.startswith(GOLDEN) or SHARES.search((root / "rt_tests" / file.name).read_text())
        for test, (duration, outcome) in file.tests.items():
            if outcome == "passed" and (test in touching or shares):
                (own if test in touching else rest).append((duration, test))
    return sorted(own), sorted(rest)


def importing(files: list[TestFile], module: str, code: str, line: int) -> bool:
    """A line runs while its module is imported or tests are collected."""
    lines, inside = statement(code, line)
    return not inside or any("" in file.lines.get(module, {}).get(str(k), []) for file in files for k in lines)


def parcels(tests: list[tuple[float, str]], parcel_s: float) -> Iterator[list[str]]:
    """Tests in parcels of some seconds, so that slow ones run only when the quick ones have seen nothing."""
    now: list[str] = []
    total = 0.0
    for took, test in tests:
        if now and total + took > parcel_s:
            yield now
            now, total, parcel_s = [], 0.0, parcel_s * 2
        now.append(test)
        total += took
    if now:
        yield now
