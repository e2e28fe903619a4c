"""docs/theory.md: its table of tolerances and limits, and the functions it names, are those of the sources."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from theory_page import ROOT, TEXT

from torqueloop.core.analyse import step_work

if not TEXT:
    pytest.skip("the manual is in the repository only", allow_module_level=True)


@dataclass(frozen=True)
class Limit:
    """A number of the sources that the method depends on."""

    name: str
    file: str
    text: str


#: enumerations that name things and limit nothing
LABELS = {
    "FORWARD", "BACKWARD", "IN_JUMP", "IN_TORQUE", "STAY", "TO_LO", "TO_HI", "TO_REST", "TO_OTHER_LAW",
    "LISTED", "FOLLOWING", "TAKEN", "TRIED", "OF_FRICTION", "OF_PORT", "OF_CONTACT", "OF_JOINT",
    "AT_NODES", "FROM_START", "AT_MEAN", "START",
}  # fmt: skip
#: preprocessor constants of sizes
SIZES = {"WIDTH", "PATTERN_ROWS"}


def limits_of(text: str, file: str) -> list[Limit]:
    """Constants of the step's own language, of C, and of enumerations."""
    found = re.findall(r"^cdef double (\w+) = ([^#\n]+)", text, re.MULTILINE)
    found += [(n, v) for n, v in re.findall(r"^ +#define TL_(\w+) (\S.*?)\s*$", text, re.MULTILINE) if n not in SIZES]
    for body in re.findall(r"^cdef enum:\n((?: +.*\n|\n)+)", text, re.MULTILINE):
        found += [(n, v) for n, v in re.findall(r"^ +(\w+) = ([^#\n]+)", body, re.MULTILINE) if n not in LABELS]
    return [Limit(name, file, value.strip()) for name, value in found]


def sources() -> list[Limit]:
    found = []
    for folder in ("step", "locks"):
        for path in sorted((ROOT / "cython_kernels" / folder).glob("*.px[dix]")) + sorted(
            (ROOT / "cython_kernels" / folder).glob("*.pyx")
        ):
            found += limits_of(path.read_text(encoding="utf-8"), path.stem)
    return list(dict.fromkeys(found))


def printed() -> list[Limit]:
    rows = re.findall(r"^\| ([A-Z][A-Z0-9_]+) \| (\w+) \| ([^|]+) \|", TEXT, re.MULTILINE)
    return [Limit(name, file, value.strip()) for name, file, value in rows]


OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Mult: operator.mul, ast.Div: operator.truediv, ast.Sub: operator.sub, ast.LShift: operator.lshift,
}  # fmt: skip


def value_of(text: str, names: Mapping[str, str]) -> float:
    """A number, a name of another limit, or what is formed from them."""

    def of(node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return of(ast.parse(names[node.id], mode="eval").body)
        if isinstance(node, ast.UnaryOp):
            return -of(node.operand)
        assert isinstance(node, ast.BinOp)
        return OPERATORS[type(node.op)](of(node.left), of(node.right))

    return float(of(ast.parse(text, mode="eval").body))


COMPILED = ("derive", "steep_ports", "slips", "massless")


def test_the_table_has_every_tolerance_and_limit_of_step_and_locks() -> None:
    there = {(one.name, one.file) for one in sources()}
    in_page = {(one.name, one.file) for one in printed() if one.file not in COMPILED}
    assert in_page == there


def test_the_table_has_their_values() -> None:
    names = {one.name: one.text for one in sources()}
    values = {(one.name, one.file): value_of(one.text, names) for one in sources()}
    wrong = {
        one.name: one.text for one in printed()
        if one.file not in COMPILED and value_of(one.text, names) != values[one.name, one.file]
    }  # fmt: skip
    assert wrong == {}


def test_the_table_has_the_values_of_what_is_done_before_the_first_step() -> None:
    from torqueloop.core.compile import massless, slips
    from torqueloop.cython_kernels.model import derive, steep_ports

    modules = {"derive": derive, "steep_ports": steep_ports, "slips": slips, "massless": massless}
    rows = [one for one in printed() if one.file in COMPILED]
    assert len(rows) >= 10
    assert {one: float(getattr(modules[one.file], one.name)) for one in rows} == {
        one: value_of(one.text, {}) for one in rows
    }


def test_the_most_work_of_a_step_is_computed_with_the_limits_of_the_sources() -> None:
    limits = {limit.name: limit.text for limit in sources()}
    for name in ("MAX_SPLITS", "REFINE", "JOINT_PARTS", "PASSES", "BODY_PASSES"):
        assert getattr(step_work, name) == int(limits[name]), name


def test_no_limit_is_printed_twice() -> None:
    rows = [(one.name, one.file) for one in printed()]
    assert sorted(set(rows)) == sorted(rows)


def test_functions_the_page_names_are_in_the_files_it_names() -> None:
    table = TEXT.split("## 16.")[1].split("## 17.")[0]
    rows = re.findall(r"^\| [^|`]+ \| ([^|]+) \| ([^|]+) \|$", table, re.MULTILINE)
    assert len(rows) > 15
    for files, functions in rows:
        names = re.findall(r"`([^`]+)`", files)
        folder = ""
        texts = []
        for name in names:
            folder = name.rpartition("/")[0] or folder
            path = next(
                (p for p in (ROOT / folder / Path(name).name, ROOT / "cython_kernels" / folder / Path(name).name,
                             ROOT / "cython_kernels" / "model" / Path(name).name) if p.exists()), None,
            )  # fmt: skip
            assert path is not None, f"{name}: no such file"
            texts.append(path.read_text(encoding="utf-8"))
        for function in re.findall(r"`([^`]+)`", functions):
            defined = re.compile(rf"^(?:cdef|cpdef|def)\b[^=\n]*\b{function}\(", re.MULTILINE)
            assert any(defined.search(text) for text in texts), f"{function} is not in {names}"
