#!/usr/bin/env python3
"""Errors of meaning, planted at random: does a test see a wrong unit, sign, name or sample in what people read?

    python rt_tests/mutation/semantic_mutations.py --seed N [--count 60] [--out FILE]

Works in a copy of the checkout (build/semantic_SEED). cosmic-ray (extra `mutation`) applies and takes back each error
and runs the tests; tests that fail without an error are left out. The errors are operators of this file: those that
cosmic-ray brings (comparisons, deleted statements) are no errors of meaning. Each draw takes a class of errors first
and then one of its places in SCOPE, so that rare classes are planted as well. An error is caught when one of the tests
for its module fails: the golden runs (rt_tests/hil/test_golden_*.py) and the tests that import the module. Status: 0;
1: less than 57 of 60 were caught.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import os
import random
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import parso
from cosmic_ray.ast import Visitor, get_ast
from cosmic_ray.mutating import mutate_code, use_mutation
from cosmic_ray.operators.operator import Operator
from cosmic_ray.testing import run_tests
from cosmic_ray.work_item import TestOutcome

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
#: what turns signals and frames into numbers that people, gates and control units read
SCOPE = (
    "hil/report", "hil/results", "hil/record", "hil/runs", "hil/can/units.py", "hil/can/load.py",
    "hil/ecu/soft_tcu.py", "hil/ecu/strategy.py", "hil/ecu/shift.py", "hil/ecu/interface.py", "hil/ecu/gears.py",
    "hil/ecu/torque_request.py", "hil/ecu/laws.py", "hil/ecu/config.py", "hil/rig/resolve/wiring.py",
    "hil/rig/devices/signals.py", "hil/rig/resolve/monitors.py", "hil/rig/run/run_stats.py",
    "hil/vehicle/model.py", "hil/study/measures.py",
)  # fmt: skip
#: share of planted errors that must be caught
LEAST = 57 / 60
GOLDEN = ("hil/test_golden_runs.py", "hil/test_golden_buses.py")
#: a test that takes longer hangs [s]
PATIENCE_S = 600.0
#: the plant's signals of one unit, which may be taken for each other
SAME_UNIT = (
    ("engine.w", "turbine.w", "out.w", "in.w"), ("car.v", "vehicle.speed"), ("n_engine", "n_turbine", "n_output"),
    ("pedal", "brake"), ("tau", "capacity"), ("p", "p_command"), ("p50", "p99", "p999"), ("heat", "loss"),
    ("gear_actual", "gear_target"),
)  # fmt: skip
#: names that stand for the two ends or sides of something
PAIRS = (
    "low high",
    "begin end",
    "first last",
    "before after",
    "before behind",
    "old new",
    "own other",
    "t y",
    "own told",
)


def names_of(node: Any) -> str:
    """The source of a node without what stands before it."""
    return str(node.get_code(include_prefix=False))


def constant(node: Any) -> bool:
    """A number, or a name that stands for one."""
    number = node.type == "number" and float(eval(node.value)) not in (0.0, 1.0, 2.0)
    return number or (node.type == "name" and re.fullmatch(r"(?!.*FILE)[A-Z][A-Z0-9_]*", node.value) is not None)


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
        if node.type not in ("arglist", "testlist_comp", "testlist_star_expr"):
            return
        parts = [names_of(c) for c in node.children[::2]]
        for k in range(len(parts) - 1):
            if SwappedNames.alike(parts[k], parts[k + 1]):
                yield ", ".join([*parts[:k], parts[k + 1], parts[k], *parts[k + 2 :]])

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
def attributes(code: str) -> frozenset[str]:
    """Everything that is read of an object in a module."""
    return frozenset(re.findall(r"\.([a-z_]\w*)", code))


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
                here = attributes(node.get_root_node().get_code())
                yield from (o for o in WrongName.FIELDS.get(node.value, []) if o in here)
        elif node.type == "string" and node.value[:1] == '"':
            for group in SAME_UNIT:
                if node.value[1:-1] in group:
                    yield from (f'"{other}"' for other in group if other != node.value[1:-1])


CLASSES = (UnitFactor, DroppedConversion, Sign, MinMax, StaleSample, OffByOne, SwappedNames, WrongName)


def modules(root: Path) -> list[Path]:
    """The modules of SCOPE, relative to the checkout."""
    folders = [root / name for name in SCOPE]
    found = [p for f in folders for p in ([f] if f.suffix == ".py" else sorted(f.rglob("*.py")))]
    return [p.relative_to(root) for p in found]


class Places(Visitor):  # type: ignore[misc]
    """How many errors of a class a module has room for."""

    def __init__(self, kind: type[Rewrite]) -> None:
        self._operator, self.count = kind(), 0

    def visit(self, node: Any) -> Any:
        self.count += sum(1 for _ in self._operator.mutation_positions(node))
        return node


def places(root: Path, kind: type[Rewrite]) -> list[tuple[Path, int]]:
    """(module, occurrence) of every error of a class."""
    found = []
    for module in modules(root):
        visitor = Places(kind)
        visitor.walk(get_ast((root / module).read_text(encoding="utf-8")))
        found += [(module, k) for k in range(visitor.count)]
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


def changed(before: str, after: str) -> tuple[str, str]:
    """The first line that is not the same."""
    return next(
        ((a.strip(), b.strip()) for a, b in zip(before.splitlines(), after.splitlines(), strict=False) if a != b)
    )


def drawn(root: Path, seed: int, count: int) -> list[tuple[type[Rewrite], Path, int]]:
    """So many different errors: a class, then one of its places."""
    rng = random.Random(seed)
    left = {kind: places(root, kind) for kind in CLASSES}
    made: list[tuple[type[Rewrite], Path, int]] = []
    while len(made) < count:
        kind = rng.choice([k for k in CLASSES if left[k]])
        module, k = left[kind].pop(rng.randrange(len(left[kind])))
        before, after = mutated(root, kind, module, k)
        if before != after:
            made.append((kind, module, k))
    return made


def tests_for(root: Path, module: Path) -> list[str]:
    """The golden runs; the tests that import the module; the unit tests of modules that import it; of a control unit
    its own tests, which run whole units."""
    near = {_dotted(module)}
    users = near | {_dotted(p.relative_to(root)) for p in (root / "hil").rglob("*.py") if _imports(p, near)}
    tests = sorted((root / "rt_tests").rglob("test_*.py"))
    own = [p for p in tests if p.parent.name in ("unit", "hil") and _imports(p, near)]
    own += [p for p in tests if p.parent.name == "unit" and _imports(p, users)]
    if module.parts[:2] == ("hil", "ecu"):
        own += [p for p in tests if p.name.startswith("test_tcu_")]
    if module.parts[:2] == ("hil", "can"):
        own += [p for p in tests if p.name == "test_send_types.py"]
    return list(dict.fromkeys([GOLDEN[0], *(str(p.relative_to(root / "rt_tests")) for p in own), GOLDEN[1]]))


def _dotted(module: Path) -> str:
    return "torqueloop." + ".".join(module.with_suffix("").parts)


def _imports(file: Path, modules: set[str]) -> bool:
    """A file imports one of these modules."""
    text = file.read_text(encoding="utf-8")
    folders = [name.rsplit(".", 1) for name in modules]
    return any(f"from {name} import" in text for name in modules) or any(
        re.search(rf"from {re.escape(folder)} import [^\n]*\b{name}\b", text) for folder, name in folders
    )


def prepare(copy: Path) -> None:
    """A fresh copy, with the kernels as they are built."""
    skip = shutil.ignore_patterns("__pycache__", ".hypothesis", "build", ".venv", ".git", "*.egg-info")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(ROOT, copy, symlinks=True, ignore=skip)


def run(copy: Path, tests: list[str], *options: str) -> tuple[TestOutcome, str]:
    """Run tests of the copy, the first failure is enough; what came of them and what pytest said."""
    command = [sys.executable, "-m", "pytest", "-c", "../pyproject.toml", "--rootdir", "..", "-q", "--no-header"]
    command += ["--tb=line", "-p", "no:cacheprovider", "-m", "not long and not proof", *options, *tests]
    with contextlib.chdir(copy / "rt_tests"):
        outcome, output = run_tests(shlex.join(command), PATIENCE_S)
    return outcome, str(output)


def sound(copy: Path, errors: list[tuple[type[Rewrite], Path, int]]) -> list[str]:
    """Options that leave out the tests that fail without an error; one that cannot even be collected ends it all."""
    every = list(dict.fromkeys(test for _, module, _ in errors for test in tests_for(copy, module)))
    outcome, output = run(copy, every)
    if outcome is TestOutcome.SURVIVED:
        return []
    failed = re.findall(r"^FAILED (\S+)", output, re.M)
    if not failed or re.search(r"^ERROR ", output, re.M):
        raise SystemExit(f"the tests cannot be run without an error: {output[-2000:]}")
    print(f"fail without an error, left out: {', '.join(failed)}", flush=True)
    return [f"--deselect={name}" for name in failed]


def plant(copy: Path, kind: type[Rewrite], module: Path, occurrence: int, options: list[str]) -> dict[str, Any]:
    """What came of one error."""
    before, after = changed(*mutated(copy, kind, module, occurrence))
    with use_mutation(copy / module, kind(), occurrence):
        outcome, output = run(copy, tests_for(copy, module), "-x", *options)
    by = re.findall(r"^(?:FAILED|ERROR) (\S+)", output, re.M)
    caught = outcome is TestOutcome.KILLED
    return {
        "class": kind.__name__, "module": str(module), "before": before, "after": after, "caught": caught,
        "by": by[0] if by else output[-200:] if caught else "",
    }  # fmt: skip


def main() -> int:
    """See above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--list", action="store_true", help="print the draw, plant nothing")
    parser.add_argument("--out", type=Path, default=None, help="JSON of the results")
    given = parser.parse_args()
    if given.list:
        for kind, module, k in drawn(ROOT, given.seed, given.count):
            before, after = changed(*mutated(ROOT, kind, module, k))
            print(f"{kind.__name__} {module}\n    {before}\n    {after}")
        return 0
    prepare(copy := BUILD / f"semantic_{given.seed}")
    os.environ["PYTHONPATH"] = str(copy)
    results = []
    errors = drawn(copy, given.seed, given.count)
    options = sound(copy, errors)
    for number, (kind, module, k) in enumerate(errors, 1):
        results.append(found := plant(copy, kind, module, k, options))
        said = f"caught by {found['by']}" if found["caught"] else "SURVIVED"
        print(
            f"{number:3} {kind.__name__} {module}\n    {found['before']}\n    {found['after']}\n    {said}", flush=True
        )
        if given.out is not None:
            text = json.dumps({"seed": given.seed, "results": results}, indent=1)
            given.out.write_text(text + "\n", encoding="utf-8")
    caught = sum(r["caught"] for r in results)
    print(f"seed {given.seed}: {caught} of {len(results)} caught")
    return 0 if caught >= LEAST * len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
