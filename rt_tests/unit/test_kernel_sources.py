"""Rules of the kernels' sources: functions stay short, tolerances have names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from test_structure import CYTHON, GENERATED, relative, sources

#: lines of a function, from its first to its last
LONGEST = 80
MADE = "# Made from "
DEFINITION = re.compile(r"( *)(?:cdef|cpdef|def) (?!class|extern|struct|enum|union)[^=]*?(\w+)\(")
#: what a tolerance looks like: 1e-9; inside a function it should be a name
EXPONENT = re.compile(r"(?<![\w.])\d+(?:\.\d+)?[eE][-+]?\d+")
PROSE = re.compile(r'("""|\'\'\').*?\1', re.DOTALL)


@dataclass(frozen=True)
class Function:
    """A function of a Cython source."""

    name: str
    line: int
    lines: tuple[str, ...]


def written_by_hand() -> list[Path]:
    """Sources of the kernels but for those that are generated."""
    found = [p for p in sources("cython_kernels", suffixes=CYTHON) if GENERATED not in p.parents]
    return [p for p in found if not p.read_text(encoding="utf-8").startswith(MADE)]


def functions(text: str) -> Iterator[Function]:
    """Functions of a source, without what stands between them; one inside another belongs to it."""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        match = DEFINITION.match(lines[at])
        head = at
        while match and head < len(lines) and not lines[head].split("#")[0].rstrip().endswith(":"):
            head += 1
            if head == len(lines) or not lines[head].strip():
                match = None  # a declaration
        if not match:
            at += 1
            continue
        end = head
        for k in range(head + 1, len(lines)):
            if lines[k].strip():
                if len(lines[k]) - len(lines[k].lstrip()) <= len(match[1]):
                    break
                end = k
        yield Function(match[2], at + 1, tuple(lines[at : end + 1]))
        at = end + 1


def long_functions(text: str) -> list[str]:
    return [f"{f.name}: {len(f.lines)} lines" for f in functions(text) if len(f.lines) > LONGEST]


def nameless(text: str) -> list[str]:
    """Lines of functions with a number that should have a name."""
    text = PROSE.sub(lambda match: "\n" * match[0].count("\n"), text)
    found = []
    for function in functions(text):
        for line in function.lines:
            if EXPONENT.search(line.split("#")[0]):
                found.append(f"{function.name}: {line.strip()}")
    return found


@pytest.mark.parametrize("path", written_by_hand(), ids=relative)
def test_no_function_of_the_kernels_is_longer_than_it_should_be(path: Path) -> None:
    assert long_functions(path.read_text(encoding="utf-8")) == []


def test_the_reader_finds_functions() -> None:
    found = [f for path in written_by_hand() for f in functions(path.read_text(encoding="utf-8"))]
    assert len(found) > 900
    names = {f.name for f in found}
    assert {"busy_step", "advance", "codec_decode", "rig_feed", "lu_solve", "scratch"} <= names
    assert not {"tl_eval", "happened"} & names


@pytest.mark.parametrize("indent", ["", "    "])
def test_a_long_function_is_seen(indent: str) -> None:
    body = "\n".join(f"{indent}    x += 1" for _ in range(LONGEST))
    first = f"{indent}cdef inline int f(const tl_model* m,\n{indent}      double x) noexcept nogil:\n"
    text = f"{first}{body}\n\n\ncdef int g():\n    pass\n"
    assert long_functions(text) == [f"f: {LONGEST + 2} lines"]
    assert [f.name for f in functions(text)] == ["f", "g"]


def step_sources() -> list[Path]:
    return [p for p in written_by_hand() if p.parent.name == "step" and p.suffix == ".pxi"]


@pytest.mark.parametrize("path", step_sources(), ids=relative)
def test_a_tolerance_of_the_step_has_a_name(path: Path) -> None:
    assert nameless(path.read_text(encoding="utf-8")) == []


def test_a_tolerance_without_a_name_is_seen() -> None:
    text = (
        '#: rad/s\ncdef double TOL = 1e-9\n\n\ncdef int f(double x):\n    """Not 1e-3."""\n    return x < {}  # 1e-4\n'
    )
    assert nameless(text.format("TOL")) == []
    assert nameless(text.format("2.5e-12 * TOL")) == ["f: return x < 2.5e-12 * TOL  # 1e-4"]
