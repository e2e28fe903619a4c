"""Errors of meaning, as operators of cosmic-ray: a wrong unit, sign, name, sample or end of something."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import parso
from cosmic_ray.operators.operator import Operator

ROOT = Path(__file__).resolve().parents[2]
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


def sources() -> list[Path]:
    """The modules of core/ and hil/."""
    return [file for part in ("core", "hil") for file in sorted((ROOT / part).rglob("*.py"))]


def numbers() -> frozenset[str]:
    """Names in capitals that stand for numbers: all others are names of files, texts and tables."""
    found = set()
    for file in sources():
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
        elif node.type in ("power", "atom_expr"):
            call = re.fullmatch(r"(?:np\.)?(?:abs|rint|round|to_si)\((\w[\w.\[\]]*)(?:, .*)?\)", names_of(node))
            if call:
                yield call[1]


class Sign(Rewrite):
    """A difference the other way round, a minus too many or too few."""

    @staticmethod
    def texts(node: Any) -> Iterator[str]:
        if node.type == "arith_expr" and len(node.children) == 3 and node.children[1].value == "-":
            a, _, b = node.children
            opened = node.get_first_leaf().get_previous_leaf()
            amount = opened.value == "(" and opened.get_previous_leaf().value == "abs"
            if b.type != "number" and not amount and "{" not in names_of(node):
                yield f"({names_of(b)} - {names_of(a)})"
        elif node.type == "factor" and node.children[0].value == "-" and not names_of(node)[1:].strip().isdigit():
            yield names_of(node)[1:]


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
    """Field -> fields of one type and unit in the same dataclass."""
    found: dict[str, list[str]] = {}
    for file in sources():
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


CLASSES = (UnitFactor, DroppedConversion, Sign, MinMax, StaleSample, OffByOne, SwappedNames, WrongName)
