#!/usr/bin/env python3
"""Errors planted at random in the Cython sources: does a test see a wrong comparison, sign, factor or condition?

    kernel_mutations.py --seed N [--count 20] [--folder can] [--list] [--out FILE] [--budget S]

cosmic-ray parses Python only, so this file draws the mutants of .pyx, .pxi and .pxd files itself: of a line drawn at
random one token is replaced (OPERATORS), a number is changed or the statement is left out. It works in a copy of the
sources (build/kernel_mutations), where only the kernels are built that a mutant changes, with -O1. A mutant that the
compiler refuses, or translates to the same machine code, is not counted.

An error is caught when a test fails, hangs or crashes that passes without it. The tests that have caught an error of
the same file come first, then the test files that share the rarest words with the changed function, until --budget is
used. --out takes the results as they come. A second call with the same file goes on where the first one ended, and one
with a larger budget judges once more what has survived.
Status 0; 1: less than 90 % were caught. Errors of meaning in Python files: semantic_mutations.py.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
COPY = ROOT / "build" / "kernel_mutations"
#: the compiled kernels without a mutant, by the name of their module
STORE, CLEAN = COPY / "build" / "kernels", COPY / "build" / "clean"
#: what is copied: the sources, their tests, and what the build needs
PARTS = "core cython_kernels hil configs rt_tests scripts docs examples torqueloop setup.py pyproject.toml".split()
FOLDERS = ("tick", "can", "link", "clock", "controls", "step", "model", "locks", "rings", "vehicle")
#: token -> what stands there instead
OPERATORS = {
    r" < ": " <= ", r" <= ": " < ", r" > ": " >= ", r" >= ": " > ", r" == ": " != ", r" != ": " == ",
    r" \+ ": " - ", r" - ": " + ", r" \* ": " / ", r" and ": " or ", r" or ": " and ", r"\bnot ": "",
    r" \+= ": " -= ", r" -= ": " += ", r"\bfmin\(": "fmax(", r"\bfmax\(": "fmin(", r"\bfabs\(": "(",
    r"\bbreak$": "pass", r"\bcontinue$": "pass", r"\bTrue\b": "False", r"\bFalse\b": "True", r"\b1e3\b": "1e-3",
    r"\b0\.5\b": "1.0", r"\[i\]": "[0]", r" = -": " = ", r"(?<![\w.])0(?![\w.])": "1", r"(?<![\w.])1(?![\w.])": "2",
}  # fmt: skip
#: lines that compute nothing: no constant of an enumeration, no declaration without a value
NO_CODE = re.compile(
    r"#|from |import |cimport |include |(c?p?def|ctypedef)\b(?!.* = .*[^:]$)|$|@|raise |\"|[A-Z]\w* = \d"
    r"|\w+(\[.*\])? \w+$"
)
#: statements of one line that can be left out
STATEMENT = re.compile(r"(?!return|cdef|else|if|for|while|elif)[\w.\[\]()&>\- ]+ [-+*/|&]?= .*[^,\\(\[]$|[\w.]+\(.*\)$")
#: tests that read sources and pages, and run nothing
READS_SOURCES = re.compile(
    r"test_(structure|sources|plain_english|theory|catalogue|citations|c_code|kernel_sources|hot_path|build|manual"
    r"|notebooks|io_library|step_files)"
)
#: the runs that every stage of the tick is part of; asked after the FIRST nearest files
GOLDEN, FIRST = "hil/test_golden_runs.py", 3
LEAST = 0.9
#: processor time of a test file whose time is not known yet, and the longest time that one test may take [s]
UNKNOWN_S, HANGS_S = 3.0, 200.0
#: test files that take longer are left out [s]
SLOW_S = 14.0
#: tests run in children of a process that has imported these packages, and nothing of ours
PREPARED = multiprocessing.get_context("forkserver")
PACKAGES = """_pytest.assertion.rewrite asammdf can cantools hypothesis lark matplotlib.pyplot msgpack numpy pandas
    pytest rich.console scipy.integrate scipy.interpolate scipy.optimize scipy.signal typer typer.testing zmq""".split()


@dataclass(frozen=True)
class Mutant:
    """One line of one file, before and after."""

    file: str
    line: int
    before: str
    after: str


# --- drawing ----------------------------------------------------------------------------------------------------------


def code_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Number and text of the lines that compute: no comment, docstring, import or declaration without a value."""
    quoted, depth = False, 0
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        text = line.strip()
        if text.count('"""') % 2:
            quoted = not quoted
        elif not quoted and '"""' not in text:
            code = text.partition("  #")[0]
            # a head of a function may go over several lines
            head = re.match(r"(c?p?def|ctypedef)\b", text) and "(" in code and " = " not in code.partition("(")[0]
            if depth <= 0 and not head and not NO_CODE.match(code):
                yield number, line
            if head or depth > 0:
                depth += code.count("(") - code.count(")")


def mutants_of(file: str, number: int, line: str) -> list[Mutant]:
    """All that can be made of one line."""
    code = line.partition("  #")[0]
    found = [
        Mutant(file, number, line, line[: match.start()] + new + line[match.end() :])
        for old, new in OPERATORS.items()
        for match in re.finditer(old, code)
    ]
    text = code.strip()
    if STATEMENT.match(text) and all(text.count(a) == text.count(b) for a, b in ("()", "[]")):
        found.append(Mutant(file, number, line, line[: len(line) - len(line.lstrip())] + "pass"))
    return found


def drawn(root: Path, folders: tuple[str, ...], seed: int) -> list[Mutant]:
    """One mutant of each line, in the order of a draw."""
    lines = []
    for folder in folders:
        for path in sorted((root / "cython_kernels" / folder).rglob("*.p*")):
            if path.suffix in (".pyx", ".pxi", ".pxd") and "topologies" not in path.parts:
                made = (mutants_of(str(path.relative_to(root)), n, line) for n, line in code_lines(path))
                lines += [some for some in made if some]
    rng = random.Random(seed)
    return [rng.choice(some) for some in rng.sample(lines, len(lines))]


# --- building ---------------------------------------------------------------------------------------------------------


def environment() -> dict[str, str]:
    """The copy comes first wherever modules are looked for."""
    one = {name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")}
    return {**os.environ, **one, "PYTHONPATH": str(COPY), "MPLBACKEND": "agg"}


def build(kernel: str = "") -> str:
    """Build one kernel, or all that have changed; what the compiler said where it fails."""
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    env = {**environment(), "TORQUELOOP_KERNELS": kernel}
    done = subprocess.run(command, cwd=COPY, env=env, capture_output=True, text=True)
    return (done.stderr or "the build fails")[-2000:] if done.returncode else ""


def prepare() -> None:
    """A fresh copy with kernels that are built quickly; what was built before stays in build/."""
    COPY.mkdir(parents=True, exist_ok=True)
    ignore = shutil.ignore_patterns(".hypothesis", "*.so")
    for name in PARTS:
        source, target = ROOT / name, COPY / name
        if source.is_dir():
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(source, target, symlinks=True, ignore=ignore)
        else:
            shutil.copy(source, target)
    setup = COPY / "setup.py"
    text = setup.read_text(encoding="utf-8")
    assert '"tick": "-O2"' in text
    setup.write_text(text.replace('"tick": "-O2"', '"tick": "-O1"'), encoding="utf-8")
    if said := build():
        raise SystemExit(f"the kernels cannot be built without a mutant: {said}")
    shutil.rmtree(CLEAN, ignore_errors=True)
    shutil.copytree(STORE, CLEAN)


def changed() -> list[Path]:
    """The compiled kernels that differ from those without a mutant."""
    clean = {path: path.read_bytes() for path in CLEAN.glob("*.so")}
    return [path for path, data in clean.items() if (STORE / path.name).read_bytes() != data]


def restore() -> None:
    """Put the kernels without a mutant back."""
    for path in changed():
        module, _, suffix = path.name.partition(".cpython")
        shutil.copy2(path, COPY / f"{module.replace('.', '/')}.cpython{suffix}")
    shutil.copytree(CLEAN, STORE, dirs_exist_ok=True)


def kernel_of(file: str) -> str:
    """The one kernel that is made of a file; "" where several are."""
    path = COPY / file
    if path.suffix == ".pyx":
        return path.stem
    users = [p for p in path.parent.glob("*.p*") if f'include "{path.name}"' in p.read_text(encoding="utf-8")]
    return users[0].stem if [p.suffix for p in users] == [".pyx"] else ""


# --- testing ----------------------------------------------------------------------------------------------------------


class Recorder:
    """A plugin of pytest that writes how tests went, and the processor time [s] of the process so far."""

    def __init__(self, log: Path) -> None:
        self.log = log

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A test that crashes the process is the last one that has begun."""
        self.note(nodeid, False)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.note(report.nodeid, report.failed)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.note(report.nodeid, True)

    def note(self, name: str, failed: bool) -> None:
        with self.log.open("a") as file:
            file.write(json.dumps([name.removeprefix("rt_tests/"), sum(os.times()[:4]), failed]) + "\n")


def run_pytest(tests: list[str], log: Path) -> None:
    """In a process of its own."""
    import pytest

    os.setsid()
    sys.path[:0] = [str(COPY)]
    os.chdir(COPY / "rt_tests")
    said = os.open(log.with_suffix(".txt"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(said, 1)
    os.dup2(said, 2)
    options = ["-c", "../pyproject.toml", "--rootdir", "..", "-q", "-x", "--tb=line", "-p", "no:cacheprovider"]
    status = pytest.main([*options, "-m", "not long and not proof", *tests], plugins=[Recorder(log)])
    # threads that a test has left behind do not keep the process
    os._exit(status)


@dataclass
class Tests:
    """What is known of the tests: seconds of a test file, tests that fail without an error, tests that have caught one
    in a file."""

    seconds: dict[str, float]
    unsound: list[str]
    caught: dict[str, list[str]]

    def run(self, tests: list[str], limit_s: float) -> str:
        """The first test that fails, hangs or crashes; "" where none does before the time is over."""
        log = COPY / "build" / "tests.log"
        log.write_text("")
        options = [f"--deselect=rt_tests/{test}" for test in self.unsound]
        process = PREPARED.Process(target=run_pytest, args=([*options, *tests], log))
        process.start()
        began, hangs = time.monotonic(), False
        while process.is_alive() and time.monotonic() - began < limit_s and not hangs:
            process.join(0.2)
            hangs = time.time() - log.stat().st_mtime > HANGS_S
        stopped = process.is_alive()
        if stopped:
            with suppress(ProcessLookupError):
                os.killpg(process.pid or 0, signal.SIGKILL)
            process.join()
        reports = [json.loads(line) for line in log.read_text().splitlines()]
        files: Counter[str] = Counter()
        for (_, begin_s, _), (name, end_s, _) in pairwise(reports):
            files[name.split("::")[0]] += end_s - begin_s
        # the last file may not be complete
        self.seconds |= dict(list(files.items())[: None if process.exitcode == 0 else -1])
        if failed := [name for name, _, failed in reports if failed]:
            return str(failed[0])
        if process.exitcode in (0, 5) or (stopped and not hangs):
            return ""
        # it hangs or has crashed; where no test has begun, a file cannot be imported
        return str(reports[-1][0]) if reports else tests[0]

    def catches(self, mutant: Mutant, budget_s: float) -> str:
        """The first test that fails because of an error that stands in the copy, of tests that take so long."""
        parcels: list[list[str]] = [list(dict.fromkeys(self.caught.get(mutant.file, [])))[-6:], []]
        total = 0.0
        near = [name for name in ranked(mutant) if name != GOLDEN]
        for place, name in enumerate([*near[:FIRST], GOLDEN, *near[FIRST:]]):
            took = self.seconds.get(name, UNKNOWN_S)
            if took < SLOW_S and (total := total + took) < budget_s:
                parcels[place >= FIRST].append(name)
        return next(filter(None, (self.run(tests, HANGS_S + 10 * budget_s) for tests in parcels)), "")


@cache
def words_of_tests() -> dict[str, set[str]]:
    """The words of each test file, and of the files that it is named after."""
    found = [p for part in ("unit", "property", "hil") for p in sorted((COPY / "rt_tests" / part).glob("test_*.py"))]
    found = [p for p in found if not READS_SOURCES.match(p.name)]
    return {str(p.relative_to(COPY / "rt_tests")): words(p.stem + " " + p.read_text(encoding="utf-8")) for p in found}


def words(text: str) -> set[str]:
    """Words of a text, and the parts of its names."""
    return {w.lower() for name in re.findall(r"[A-Za-z_]\w{2,}", text) for w in (name, *name.split("_")) if len(w) > 2}


def ranked(mutant: Mutant) -> list[str]:
    """Test files, those first that share the rarest words with the function of a mutant and the name of its file."""
    lines = (COPY / mutant.file).read_text(encoding="utf-8").splitlines()
    head = re.compile(r" *(c?p?def|class)\b.*[(:]")
    begin = next((n for n in range(mutant.line, -1, -1) if head.match(lines[n])), 0)
    end = next((n for n in range(mutant.line + 1, len(lines)) if head.match(lines[n])), len(lines))
    path = Path(mutant.file)
    wanted = words("\n".join([*lines[begin:end], path.stem, kernel_of(mutant.file)]))
    tests = words_of_tests()
    count = Counter(word for some in tests.values() for word in some)
    weight = {word: math.log(len(tests) / count[word]) for word in wanted if word in count}
    stem = kernel_of(mutant.file) or path.stem
    near = {f"{path.parent.name}.{stem}", f"{path.parent.name} import {stem}"}
    score = {
        # long files have many words
        name: sum(weight.get(word, 0.0) for word in some & wanted) / math.sqrt(len(some))
        * (2.0 if any(text in _text(name) for text in near) else 1.0)
        for name, some in tests.items()
    }  # fmt: skip
    return sorted(score, key=lambda name: -score[name])


@cache
def _text(test: str) -> str:
    return (COPY / "rt_tests" / test).read_text(encoding="utf-8")


def judged(mutant: Mutant, tests: Tests, budget_s: float) -> str:
    """The test that catches a mutant, "" where none does; "refused" by the compiler, "same" machine code."""
    path = COPY / mutant.file
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    lines[mutant.line] = lines[mutant.line].replace(mutant.before, mutant.after)
    path.write_text("".join(lines), encoding="utf-8")
    try:
        if build(kernel_of(mutant.file)):
            return "refused"
        if not changed():
            return "same"
        by = tests.catches(mutant, budget_s)
    finally:
        path.write_text(text, encoding="utf-8")
        restore()
    if not by:
        return ""
    if by not in {t for some in tests.caught.values() for t in some} and tests.run([by], HANGS_S):
        tests.unsound.append(by)
        return judged(mutant, tests, budget_s)
    tests.caught.setdefault(mutant.file, []).append(by)
    return by


def main() -> int:
    """See above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--folder", choices=FOLDERS, action="append")
    parser.add_argument("--list", action="store_true", help="print the draw, plant nothing")
    parser.add_argument("--out", type=Path, default=None, help="JSON of the results")
    parser.add_argument("--budget", type=float, default=60.0, help="processor time of the tests of one mutant [s]")
    given = parser.parse_args()
    possible = drawn(ROOT, tuple(given.folder or FOLDERS), given.seed)
    print(f"seed {given.seed}: {given.count} of {len(possible)} lines")
    if given.list:
        for m in possible[: given.count]:
            print(f"{m.file}:{m.line + 1}\n    {m.before.strip()}\n    {m.after.strip()}")
        return 0
    prepare()
    os.environ |= environment()
    PREPARED.set_forkserver_preload(PACKAGES)
    results: list[dict[str, Any]] = []
    tests = Tests({}, [], {})
    if given.out is not None and given.out.exists():
        before = json.loads(given.out.read_text())
        results = [r for r in before["results"] if r["by"] or r["budget_s"] >= given.budget]
        tests = Tests(**before["tests"])
    done = {(r["file"], r["line"], r["after"]) for r in results}
    for m in possible:
        counted = sum(r["by"] not in ("refused", "same") for r in results)
        if counted >= given.count:
            break
        if (m.file, m.line, m.after) in done:
            continue
        began = time.monotonic()
        by = judged(m, tests, given.budget)
        results.append({**asdict(m), "by": by, "budget_s": given.budget, "seconds": round(time.monotonic() - began, 1)})
        said = [f"{counted + 1:3} {m.file}:{m.line + 1}", m.before.strip(), m.after.strip(), by or "SURVIVED"]
        print(*said, f"{results[-1]['seconds']} s", sep="\n    ", flush=True)
        if given.out is not None:
            given.out.write_text(json.dumps({"seed": given.seed, "results": results, "tests": asdict(tests)}, indent=1))
    counted = [r["by"] for r in results if r["by"] not in ("refused", "same")]
    caught = sum(map(bool, counted))
    print(f"seed {given.seed}: {caught} of {len(counted)} caught; not counted: {len(results) - len(counted)}")
    return 0 if caught >= LEAST * len(counted) else 1


if __name__ == "__main__":
    sys.exit(main())
