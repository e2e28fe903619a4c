#!/usr/bin/env python3
"""Errors of meaning, planted at random: does a test see a wrong unit, sign, name or sample in what people read?

    python rt_tests/mutation/semantic_mutations.py --seed N [--count 60] [--scope hil/report ...] [--out FILE]
    python rt_tests/mutation/semantic_mutations.py --all --scope hil/report/metrics.py [--tests unit/test_x.py ...]

Works in copies of the checkout (build/mutants_K). cosmic-ray (extra `mutation`) applies and takes back each error; the
errors are operators of this file: those that cosmic-ray brings (comparisons, deleted statements) are no errors of
meaning. Each draw takes a class of errors first and then one of its places in the scope, so that rare classes are
planted as well. A test file that may see an error runs once with coverage (touched.py); the error is then held against
the tests that run its line, the quickest first. It is caught when one of them fails that passes without it; it is
undecided, which is counted apart, when they take longer than --limit. Status: 0; 1: less than 57 of 60 were caught. An
error that changes no behaviour survives: whoever reads the list says which.
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
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import parso
from cosmic_ray.ast import Visitor, get_ast
from cosmic_ray.mutating import mutate_code, use_mutation
from cosmic_ray.operators.operator import Operator
from near import near
from touched import Sound, candidates, importing, measured, parcels, stored
from warm import run_tests

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
#: what each test file runs
TOUCHED = BUILD / "touched"
#: share of planted errors that must be caught
LEAST = 57 / 60
#: tests that run together before slower ones do, to begin with [s]
PARCEL_S = 20.0
#: status of pytest where it cannot find its tests
USAGE = 4
#: the plant's signals of one unit, which may be taken for each other
SAME_UNIT = (
    ("engine.w", "turbine.w", "out.w", "in.w"), ("car.v", "vehicle.speed"), ("n_engine", "n_turbine", "n_output"),
    ("pedal", "brake"), ("tau", "capacity"), ("p", "p_command"), ("p50", "p99", "p999"), ("heat", "loss"),
    ("gear_actual", "gear_target"),
)  # fmt: skip
#: names that stand for the two ends or sides of something
PAIRS = ("low high", "begin end", "first last", "before after", "before behind", "old new", "own other", "t y",
         "own told")  # fmt: skip


def names_of(node: Any) -> str:
    """The source of a node without what stands before it."""
    return str(node.get_code(include_prefix=False))


def numbers() -> frozenset[str]:
    """Names of hil/ in capitals that stand for numbers: all others are names of files, texts and tables."""
    found = set()
    for file in sorted((ROOT / "hil").rglob("*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            target, value = getattr(node, "targets", [None])[0], getattr(node, "value", None)
            kinds = (ast.BinOp, ast.UnaryOp, ast.Attribute)
            number = isinstance(value, ast.Constant) and isinstance(value.value, int | float)
            computed = isinstance(value, kinds) and not any(
                isinstance(n, ast.Constant) and isinstance(n.value, str) for n in ast.walk(value)
            )
            if isinstance(target, ast.Name) and target.id.isupper() and (number or computed):
                found.add(target.id)
    return frozenset(found)


NUMBERS = numbers()


def constant(node: Any) -> bool:
    """A number, or a name that stands for one."""
    number = node.type == "number" and float(eval(node.value)) not in (0.0, 1.0, 2.0)
    return number or (node.type == "name" and node.value in NUMBERS)


class Rewrite(Operator):  # type: ignore[misc]
    """Replaces a node by another text, of which there may be several."""

    @staticmethod
    def texts(node: Any) -> Iterator[str]:
        """What may stand there instead."""
        raise NotImplementedError

    def mutation_positions(self, node: Any) -> Iterator[Any]:
        for _ in self.texts(node):
            yield (node.start_pos, node.end_pos)

    def mutate(self, node: Any, index: int) -> Any:
        text = list(self.texts(node))[index]
        return parso.python.tree.Name(text, node.start_pos, prefix=node.get_first_leaf().prefix)

    @classmethod
    def examples(cls) -> tuple[Any, ...]:
        return ()


class UnitFactor(Rewrite):
    """A conversion upside down: times for by."""

    @staticmethod
    def texts(node: Any) -> Iterator[str]:
        if node.type == "term" and len(node.children) == 3 and node.children[1].value in "*/":
            a, op, b = node.children
            if (constant(b) or (constant(a) and op.value == "*")) and not names_of(a).startswith("["):
                yield f"{names_of(a)} {'/' if op.value == '*' else '*'} {names_of(b)}"


class DroppedConversion(Rewrite):
    """A factor, an amount or a conversion left out."""

    @staticmethod
    def texts(node: Any) -> Iterator[str]:
        if node.type == "term" and len(node.children) == 3 and node.children[1].value in "*/":
            a, op, b = node.children
            if constant(b):
                yield names_of(a)
            elif constant(a) and op.value == "*":
                yield names_of(b)
        call = re.fullmatch(r"(?:np\.)?(?:abs|rint|round|to_si)\((\w[\w.\[\]]*)(?:, .*)?\)", names_of(node))
        if node.type in ("power", "atom_expr") and call:
            yield call[1]


class Sign(Rewrite):
    """A difference the other way round, a minus too many or too few."""

    @staticmethod
    def texts(node: Any) -> Iterator[str]:
        code = names_of(node)
        if node.type == "arith_expr" and len(node.children) == 3 and node.children[1].value == "-":
            a, _, b = node.children
            opened = node.get_first_leaf().get_previous_leaf()
            amount = opened.value == "(" and opened.get_previous_leaf().value == "abs"
            if b.type != "number" and not amount and "{" not in code:
                yield f"({names_of(b)} - {names_of(a)})"
        elif node.type == "factor" and code.startswith("-") and not code[1:].strip().isdigit():
            yield code[1:]


class MinMax(Rewrite):
    """The smallest for the largest."""

    OTHER = {"min": "max", "nanmin": "nanmax", "minimum": "maximum", "argmin": "argmax"}

    @staticmethod
    def texts(node: Any) -> Iterator[str]:
        other = MinMax.OTHER | {b: a for a, b in MinMax.OTHER.items()}
        if node.type == "name" and node.value in other:
            after = node.get_next_leaf()
            if after is not None and after.value == "(" and node.parent.type != "funcdef":
                yield other[node.value]


class StaleSample(Rewrite):
    """The sample before, or the first for the last."""

    @staticmethod
    def texts(node: Any) -> Iterator[str]:
        if node.type == "trailer" and names_of(node) == "[-1]":
            yield "[-2]"
            yield "[0]"
        elif node.type == "trailer" and names_of(node) == "[0]" and node.get_previous_leaf().value in "t)valuesbands":
            yield "[-1]"


class OffByOne(Rewrite):
    """One sample more or less."""

    @staticmethod
    def texts(node: Any) -> Iterator[str]:
        if node.type == "arith_expr" and len(node.children) == 3 and names_of(node.children[2]) == "1":
            yield names_of(node.children[0])
        elif (
            node.type == "string"
            and node.value in ('"right"', '"left"')
            and "searchsorted" in names_of(node.parent.parent)
        ):
            yield '"left"' if "right" in node.value else '"right"'


class SwappedNames(Rewrite):
    """Two neighbours of a call or a tuple in each other's place, where one may be taken for the other by its name."""

    @staticmethod
    def texts(node: Any) -> Iterator[str]:
        if node.type not in ("arglist", "testlist_comp", "testlist_star_expr") or SwappedNames.unordered(node):
            return
        parts = [names_of(c) for c in node.children[::2]]
        for k in range(len(parts) - 1):
            if SwappedNames.alike(parts[k], parts[k + 1]):
                yield ", ".join([*parts[:k], parts[k + 1], parts[k], *parts[k + 2 :]])

    @staticmethod
    def unordered(node: Any) -> bool:
        """What a set is made of, or of what the smallest or largest is taken: the order says nothing."""
        if node.type == "arglist" and names_of(node.parent.get_previous_leaf()) in ("min", "max", "minimum", "maximum"):
            return True
        loop = node.search_ancestor("sync_comp_for", "comp_for")
        while loop is not None and loop.parent.type in ("sync_comp_for", "comp_for", "comp_if"):
            loop = loop.parent
        return loop is not None and loop.parent.type == "dictorsetmaker" and loop.parent.children[1] is loop

    @staticmethod
    def alike(one: str, other: str) -> bool:
        """Names of one object, of one unit, of one quantity, or a pair."""
        if one == other or not all(re.fullmatch(r"[a-z_][\w.]*", name) for name in (one, other)):
            return False
        (a, _, x), (b, _, y) = one.rpartition("."), other.rpartition(".")
        words = (x.split("_"), y.split("_"))
        alike = len(words[0]) > 1 and len(words[1]) > 1 and (words[0][0] == words[1][0] or words[0][-1] == words[1][-1])
        return bool(a and a == b) or alike or f"{x} {y}" in PAIRS


@cache
def attributes(root: Any) -> frozenset[str]:
    """Everything that is read of an object in a module."""
    return frozenset(re.findall(r"\.([a-z_]\w*)", root.get_code()))


def siblings() -> dict[str, list[str]]:
    """Field -> fields of one type and unit in the same dataclass of hil/."""
    found: dict[str, list[str]] = {}
    for file in sorted((ROOT / "hil").rglob("*.py")):
        for cls in (n for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.ClassDef)):
            fields = [(n.target.id, ast.unparse(n.annotation)) for n in cls.body
                      if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)]  # fmt: skip
            for name, kind in fields:
                unit = name.rpartition("_")[2] if "_" in name else ""
                others = [
                    o
                    for o, k in fields
                    if o != name and k == kind and unit == (o.rpartition("_")[2] if "_" in o else "")
                ]
                if kind.startswith(("int", "float")) and others and name not in found:
                    found[name] = others
    return found


class WrongName(Rewrite):
    """Another field of the same type and unit, another signal of the same unit."""

    FIELDS = siblings()

    @staticmethod
    def texts(node: Any) -> Iterator[str]:
        if node.type == "name" and node.parent.type == "trailer" and node.get_previous_leaf().value == ".":
            after = node.get_next_leaf()
            if after is None or after.value not in ("(", "="):
                # of the same object: both are read in this module
                here = attributes(node.get_root_node())
                yield from (o for o in WrongName.FIELDS.get(node.value, []) if o in here)
        elif node.type == "string" and node.value[:1] == '"':
            for group in SAME_UNIT:
                if node.value[1:-1] in group:
                    yield from (f'"{other}"' for other in group if other != node.value[1:-1])


#: class, module, which of its places
Error = tuple[type[Rewrite], Path, int]
CLASSES = (UnitFactor, DroppedConversion, Sign, MinMax, StaleSample, OffByOne, SwappedNames, WrongName)


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


def prepare(copy: Path) -> None:
    """A fresh copy, with the kernels as they are built and compiled modules that are told by their hashes."""
    skip = shutil.ignore_patterns("__pycache__", ".hypothesis", "build", ".venv", ".git", "*.egg-info")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(ROOT, copy, symlinks=True, ignore=skip)
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
    #: caught, survived, undecided
    outcome: str
    #: the test that caught it, or why nothing is known
    by: str
    took_s: float


def plant(copy: Path, error: Error, limit_s: float, sound: Sound, only: list[str]) -> Verdict:
    """Run the tests that run the changed line, then others that look at the same results, until one fails or time is
    over; of the test files named in `only`, if there are some. A test that fails with the error must pass without
    it."""
    kind, module, occurrence = error
    code, new = mutated(copy, kind, module, occurrence)
    line, before, after = changed(code, new) if code != new else (0, "", "")
    took, asked, shared, how = 0.0, False, [], "collected"

    def verdict(outcome: str, by: str) -> Verdict:
        return Verdict(kind.__name__, str(module), line, before, after, outcome, by, took)

    if code == new:
        return verdict("survived", "no error that can be imported")

    def steps() -> Iterator[list[str]]:
        nonlocal how
        near_ones = near(copy, module)
        done: set[str] = set()
        ranks = [*near_ones[:2], stored(copy, TOUCHED, str(module)), *near_ones[2:]]
        for names in [only] if only else ranks:
            files = [
                f
                for name in names
                if name not in done and (f := measured(copy, TOUCHED, name, str(module), known=asked)) is not None
            ]
            done |= set(names)
            if importing(files, str(module), code, line):
                how = "importing"
            own, rest = candidates(copy, files, str(module), code, line)
            shared.extend(rest)
            yield from parcels(own, PARCEL_S)
        yield from parcels(sorted(shared), PARCEL_S)

    for parcel in steps():
        left = [test for test in parcel if test not in sound.fails]
        while left:
            asked = True
            with use_mutation(copy / module, kind(), occurrence):
                status, said, used = run_tests(copy, left, "-x", limit_s=max(limit_s - took, 1.0), kind=how)
            took += used
            if status == USAGE:
                # a test file that cannot be imported with the error is such a test
                if sound.has(copy, left[0], how):
                    return verdict("caught", f"{left[0]}: cannot be imported")
                raise SystemExit(f"the tests cannot be run: {said[-2000:]}")
            if status is None:
                return verdict("undecided", f"after {limit_s:g} s, at {parcel[0]}")
            if not status:
                break
            failed = re.search(r"^(?:FAILED|ERROR) (?:rt_tests/)?(.+?)(?: - |$)", said, re.M)
            test = f"rt_tests/{failed[1]}" if failed else said[-200:]
            if not failed or sound.has(copy, test, how):
                return verdict("caught", test)
            print(f"    fails without an error: {test}", flush=True)
            left = left[left.index(test) + 1 :] if test in left else []
    return verdict("survived", "" if asked else "no test that is near runs this line")


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
    parser.add_argument("--scope", nargs="+", default=["hil"], help="folders or modules the errors are drawn from")
    parser.add_argument("--limit", type=float, default=180.0, help="most processor time for one error [s]")
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
    copies = [BUILD / f"mutants_{k}" for k in range(given.workers)]
    for copy in copies:
        prepare(copy)
    errors = [e for number, e in enumerate(draw, 1) if not given.only or number in given.only]
    free, results, sound = list(copies), [], Sound()

    def one(error: Error) -> Verdict:
        copy = free.pop()
        try:
            return plant(copy, error, given.limit, sound, tests)
        finally:
            free.append(copy)

    with ThreadPoolExecutor(given.workers) as pool:
        for number, found in enumerate(pool.map(one, errors), 1):
            results.append(found)
            print(f"{number:3} {found.kind} {found.module}:{found.line}  {found.took_s:.0f} s\n    {found.before}\n"
                  f"    {found.after}\n    {found.outcome} {found.by}", flush=True)  # fmt: skip
            if given.out is not None:
                text = json.dumps({"seed": given.seed, "results": [asdict(r) for r in results]}, indent=1)
                given.out.write_text(text + "\n", encoding="utf-8")
    counts = {word: sum(r.outcome == word for r in results) for word in ("caught", "survived", "undecided")}
    print(
        f"{'all' if given.all else f'seed {given.seed}'}: {len(results)} planted, "
        + ", ".join(f"{n} {word}" for word, n in counts.items())
    )
    return 0 if counts["caught"] >= LEAST * len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
