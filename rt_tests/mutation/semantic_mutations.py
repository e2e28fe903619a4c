#!/usr/bin/env python3
"""Errors of meaning, planted at random: does a test see a wrong unit, sign, name or sample in what people read?

    python rt_tests/mutation/semantic_mutations.py --seed N [--count 60] [--scope hil core ...] [--out FILE]
    python rt_tests/mutation/semantic_mutations.py --all --scope hil/report/metrics.py [--tests unit/test_x.py ...]

Works in copies of the checkout (build/mutants_K). cosmic-ray (extra `mutation`) applies and takes back each error; the
errors are those of operators.py: those that cosmic-ray brings (comparisons, deleted statements) are no errors of
meaning. Each draw takes a class of errors first and then one of its places in the scope, so that rare classes are
planted as well. All test files run once with coverage (touched.py); an error is then held against the tests that run
its line, the quickest first, in a process that has collected them (warm.py). It is caught when one of them fails twice
that passes without it: a test that waits for a clock also fails on a busy machine. It is undecided, which is counted
apart, when they take longer than --limit. A run that was ended goes on where it was with the same --out, and decides
again what a larger --limit may decide. At its end it prints a table and the share caught with its interval. Status: 0;
1: less than 9 of 10 of those decided were caught. An error that changes no behaviour survives: whoever reads the list
says which.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cosmic_ray.ast import Visitor, get_ast
from cosmic_ray.mutating import mutate_code, use_mutation
from operators import CLASSES, ROOT, Rewrite
from scipy.stats import binomtest
from touched import Touched
from warm import NEEDS_IMPORT, run_job

BUILD = ROOT / "build"
#: what each test file runs
TOUCHED = BUILD / "touched"
#: share of the decided errors that must be caught
LEAST = 0.9
#: tests whose modules are imported with an error: so many files first, then twice as many each time
FILES = 2
OUTCOMES = ("caught", "survived", "undecided")
#: status of pytest where it cannot find its tests
USAGE = 4
#: class, module, which of its places
Error = tuple[type[Rewrite], Path, int]


def modules(root: Path, scope: list[str]) -> list[Path]:
    """The modules of these folders and files, relative to the checkout."""
    folders = [root / name for name in scope]
    found = [p for f in folders for p in ([f] if f.suffix == ".py" else sorted(f.rglob("*.py")))]
    return [p.relative_to(root) for p in found]


class Places(Visitor):  # type: ignore[misc]
    """The lines on which a module has room for errors, by their class."""

    def __init__(self) -> None:
        self._operators = {kind: kind() for kind in CLASSES}
        self.lines: dict[type[Rewrite], list[int]] = {kind: [] for kind in CLASSES}

    def visit(self, node: Any) -> Any:
        for kind, operator in self._operators.items():
            self.lines[kind] += [start[0] for start, _ in operator.mutation_positions(node)]
        return node


def places(root: Path, scope: list[str]) -> dict[type[Rewrite], list[tuple[Path, int, int]]]:
    """(module, occurrence, line) of every error, by its class."""
    found: dict[type[Rewrite], list[tuple[Path, int, int]]] = {kind: [] for kind in CLASSES}
    for module in modules(root, scope):
        visitor = Places()
        visitor.walk(get_ast((root / module).read_text(encoding="utf-8")))
        for kind, lines in visitor.lines.items():
            found[kind] += [(module, k, line) for k, line in enumerate(lines)]
    return found


def mutated(root: Path, kind: type[Rewrite], module: Path, occurrence: int) -> tuple[str, str]:
    """(source, the same with the error); equal where there is none that can be imported."""
    code = (root / module).read_text(encoding="utf-8")
    new = mutate_code(code, kind(), occurrence) or code
    try:
        same = ast.dump(ast.parse(code)) == ast.dump(ast.parse(new))
    except SyntaxError:
        same = True
    return code, code if same else new


def changed(before: str, after: str) -> tuple[int, str, str]:
    """Number and text of the first line that is not the same."""
    lines = enumerate(zip(before.splitlines(), after.splitlines(), strict=False), 1)
    return next((n, a.strip(), b.strip()) for n, (a, b) in lines if a != b)


def drawn(root: Path, scope: list[str], seed: int, count: int) -> list[Error]:
    """So many different errors: a class, then one of its places."""
    rng = random.Random(seed)
    left = places(root, scope)
    made: list[Error] = []
    while len(made) < count:
        kind = rng.choice([k for k in CLASSES if left[k]])
        module, k, _ = left[kind].pop(rng.randrange(len(left[kind])))
        before, after = mutated(root, kind, module, k)
        if before != after:
            made.append((kind, module, k))
    return made


def every(root: Path, scope: list[str]) -> list[Error]:
    """One error of each class for each line that has room for it."""
    made: dict[tuple[Path, int, str], Error] = {}
    for kind, found in places(root, scope).items():
        for module, k, line in found:
            made.setdefault((module, line, kind.__name__), (kind, module, k))
    return [made[key] for key in sorted(made)]


def prepare(copies: list[Path]) -> None:
    """Fresh copies, with the kernels as they are built and compiled modules that are told by their hashes."""
    skip = shutil.ignore_patterns("__pycache__", ".hypothesis", "build", ".venv", ".git", "*.egg-info")
    for source, copy in zip([ROOT, *copies], copies, strict=False):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(source, copy, symlinks=True, ignore=skip if source == ROOT else None)
        if source == ROOT:
            compiled = [str(copy / name) for name in ("core", "hil", "cython_kernels")]
            subprocess.run([sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", *compiled])


@dataclass(frozen=True)
class Verdict:
    """What came of one error."""

    kind: str
    module: str
    line: int
    before: str
    after: str
    #: one of OUTCOMES
    outcome: str
    #: the test that caught it, or why nothing is known
    by: str
    took_s: float


class Judge:
    """Holds errors against the tests of a copy of the checkout."""

    def __init__(self, copy: Path, touched: Touched, limit_s: float, only: list[str]) -> None:
        self.copy, self.touched, self.limit_s, self.only = copy, touched, limit_s, tuple(only)
        #: (kind of process, test) -> it passes without an error
        self.sound: dict[tuple[str, str], bool] = {}

    def passes(self, kind: str, module: Path, test: str) -> bool:
        """A test passes in the copy as it is."""
        if (kind, test) not in self.sound:
            job = {"module": str(module), "tests": [test]}
            self.sound[kind, test] = run_job(self.copy, kind, job, self.limit_s)[0] == 0
        return self.sound[kind, test]

    def ran(self, error: Error, how: str, tests: list[str], limit_s: float) -> tuple[int | None, str, float]:
        """Run tests with the error, see run_job."""
        kind, module, occurrence = error
        job = {"module": str(module), "tests": tests}
        with use_mutation(self.copy / module, kind(), occurrence):
            return run_job(self.copy, how, job, limit_s)

    def verdict(self, error: Error) -> Verdict:
        """Run the tests that run the changed line, then others that look at the same results, until one fails or time
        is over; of the test files named in `only`, if there are some."""
        kind, module, occurrence = error
        code, new = mutated(self.copy, kind, module, occurrence)
        if code == new:
            return Verdict(kind.__name__, str(module), 0, "", "", "survived", "no error that can be imported", 0.0)
        line, before, after = changed(code, new)
        tests = self.touched.candidates(str(module), code, line)
        ready, late = ([t for t in part if t.removeprefix("rt_tests/").startswith(self.only or "")] for part in tests)
        outcome, by, took = self.held(error, ready, late)
        return Verdict(kind.__name__, str(module), line, before, after, outcome, by, took)

    def held(self, error: Error, ready: list[str], late: list[str]) -> tuple[str, str, float]:
        """(outcome, the test that caught the error, processor time [s]). Tests that are ready run in the process that
        has collected them, the others in one that imports the module with the error."""
        module, took = error[1], 0.0
        left = [*([("collected", ready)] if ready else []), *((module.parts[0], parcel) for parcel in parcels(late))]
        if not left:
            return "survived", "no test runs this line", took
        while left:
            how, parcel = left.pop(0)
            status, said, used = self.ran(error, how, parcel, max(self.limit_s - took, 1.0))
            took += used
            if status == NEEDS_IMPORT:
                left += [(module.parts[0], again) for again in parcels(parcel)]
            elif status is None:
                return "undecided", f"after {self.limit_s:g} s", took
            elif status == USAGE and self.passes(how, module, parcel[0]):
                return "caught", f"{parcel[0]}: cannot be imported", took
            elif status:
                failed = re.search(r"^(?:FAILED|ERROR) (?:rt_tests/)?(.+?)(?: - |$)", said, re.M)
                test = f"rt_tests/{failed[1]}" if failed else said[-200:]
                if test not in parcel or (
                    self.passes(how, module, test) and self.ran(error, how, [test], self.limit_s)[0]
                ):
                    return "caught", test, took
                print(f"    does not fail for the error alone: {test}", flush=True)
                if after := [t for t in parcel[parcel.index(test) + 1 :] if t != test]:
                    left.insert(0, (how, after))
        return "survived", "", took


def parcels(tests: list[str]) -> list[list[str]]:
    """Tests by their files, a few files first."""
    files: dict[str, list[str]] = {}
    for test in tests:
        files.setdefault(test.partition("::")[0], []).append(test)
    left, made, size = list(files.values()), [], FILES
    while left:
        made.append([test for file in left[:size] for test in file])
        left, size = left[size:], 2 * size
    return made


def main() -> int:
    """See above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--all", action="store_true", help="one error of each class for each line instead of a draw")
    parser.add_argument(
        "--tests", nargs="+", default=[], help="test files (unit/test_x.py) instead of all that are near"
    )
    names = [kind.__name__ for kind in CLASSES]
    parser.add_argument("--kinds", nargs="+", choices=names, default=names, help="with --all: only these classes")
    parser.add_argument(
        "--scope", nargs="+", default=["hil", "core"], help="folders or modules the errors are drawn from"
    )
    parser.add_argument("--limit", type=float, default=60.0, help="most processor time for one error [s]")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="print the draw, plant nothing")
    parser.add_argument("--only", type=int, nargs="+", help="numbers of the draw to plant")
    parser.add_argument("--out", type=Path, default=None, help="JSON of the results")
    given = parser.parse_args()
    whole = [e for e in every(ROOT, given.scope) if e[0].__name__ in given.kinds] if given.all else []
    draw = whole if given.all else drawn(ROOT, given.scope, given.seed, given.count)
    tests = [name.removeprefix("rt_tests/") for name in given.tests]
    if given.list:
        for number, (kind, module, k) in enumerate(draw, 1):
            before, after = mutated(ROOT, kind, module, k)
            line, before, after = (
                changed(before, after) if before != after else (0, "no error that can be imported", "")
            )
            print(f"{number:3} {kind.__name__} {module}:{line}\n    {before}\n    {after}")
        return 0
    errors = {number: e for number, e in enumerate(draw, 1) if not given.only or number in given.only}
    out = given.out or BUILD / f"mutations_{'all' if given.all else given.seed}.json"
    results = done_before(out, draw, given.limit)
    copies = [BUILD / f"mutants_{k}" for k in range(given.workers)]
    prepare(copies)
    asked = {str(module) for _, module, _ in errors.values()}
    touched = Touched(copies[0], BUILD / "touched", asked, given.workers)
    free = [Judge(copy, touched, given.limit, tests) for copy in copies]

    def one(number: int) -> tuple[int, Verdict]:
        judge = free.pop()
        try:
            return number, judge.verdict(errors[number])
        finally:
            free.append(judge)

    with ThreadPoolExecutor(given.workers) as pool:
        for ended in as_completed([pool.submit(one, number) for number in errors if number not in results]):
            number, found = ended.result()
            results[number] = found
            print(f"{number:3} {found.kind} {found.module}:{found.line}  {found.took_s:.0f} s\n    {found.before}\n"
                  f"    {found.after}\n    {found.outcome} {found.by}", flush=True)  # fmt: skip
            text = json.dumps({n: asdict(r) for n, r in sorted(results.items())}, indent=1)
            out.write_text(text + "\n", encoding="utf-8")
    return summary(f"{'all' if given.all else f'seed {given.seed}'}", list(results.values()))


def summary(what: str, results: list[Verdict]) -> int:
    """Print what came of each class and of all; the status."""
    print(f"\n{'class':18}" + "".join(f"{word:>11}" for word in OUTCOMES))
    for kind in sorted({r.kind for r in results}):
        own = [r.outcome for r in results if r.kind == kind]
        print(f"{kind:18}" + "".join(f"{own.count(word):11}" for word in OUTCOMES))
    caught, survived, undecided = (sum(r.outcome == word for r in results) for word in OUTCOMES)
    seconds = sum(r.took_s for r in results)
    print(
        f"{what}: {len(results)} planted, {caught} caught, {survived} survived, {undecided} undecided, {seconds:.0f} s"
    )
    if not (decided := caught + survived):
        return 1
    share = binomtest(caught, decided).proportion_ci(method="wilson")
    print(
        f"caught: {caught / decided:.1%} of those decided, 95 % interval (Wilson) {share.low:.1%} to {share.high:.1%}"
    )
    return 0 if caught >= LEAST * decided else 1


def done_before(out: Path, draw: list[Error], limit_s: float) -> dict[int, Verdict]:
    """What an earlier run has found out of the same draw, by number; without what a larger limit may decide."""
    if not out.exists():
        return {}
    found = {int(n): Verdict(**v) for n, v in json.loads(out.read_text(encoding="utf-8")).items()}
    same = [(v.kind, v.module) == (draw[n - 1][0].__name__, str(draw[n - 1][1])) for n, v in found.items()]
    if not all(same):
        raise SystemExit(f"{out} holds the results of another draw")
    return {n: v for n, v in found.items() if v.outcome != "undecided" or v.took_s >= limit_s}


if __name__ == "__main__":
    sys.exit(main())
