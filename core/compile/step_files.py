"""The files of the step: their order, what each is for, the equations it implements, and who calls whom.

`cython_kernels/step/order.pxi` has the order. A name of a file (function, constant, struct) is used in that file and in
files below it; `upward` finds what is used above. docs/step_files.md is made from the same reading by
`python -m torqueloop.core.compile.record_sources`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from torqueloop.core.describe.classes import dataclass

STEP = Path(__file__).resolve().parents[2] / "cython_kernels" / "step"
INCLUDE = re.compile(r'^include "(\w+)\.pxi"$', re.MULTILINE)
GROUP = re.compile(r"^# --- (\w+): (.*)$", re.MULTILINE)
EQUATIONS = re.compile(r"^# Equations: (.*)\.$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A definition at the top level of a file of the step, or some that belong together (an enumeration)."""

    file: str
    names: tuple[str, ...]
    #: names it may use of others: what it calls, constants, structs
    uses: frozenset[str]


@dataclass(frozen=True)
class Upward:
    """A definition that uses a name of a file that stands below its own."""

    file: str
    name: str
    uses: str
    of: str


@cache
def order() -> tuple[str, ...]:
    """Names of the files, without their ending, as they may call each other: a file calls those before it."""
    return tuple(INCLUDE.findall((STEP / "order.pxi").read_text(encoding="utf-8")))


def groups() -> list[tuple[str, str, tuple[str, ...]]]:
    """Name, job and files of each group of the order."""
    text = (STEP / "order.pxi").read_text(encoding="utf-8")
    starts = list(GROUP.finditer(text))
    ends = [*(m.start() for m in starts[1:]), len(text)]
    return [(m[1], m[2], tuple(INCLUDE.findall(text[m.end() : end]))) for m, end in zip(starts, ends, strict=True)]


def texts() -> dict[str, str]:
    """Text of each file, in order."""
    return {name: (STEP / f"{name}.pxi").read_text(encoding="utf-8") for name in order()}


def head(text: str) -> str:
    """The comment that a file begins with, without the signs of a comment."""
    lines = []
    for line in text.split("\n"):
        if not line.startswith("#") or line.startswith("#:"):
            break
        lines.append(line[2:])
    return "\n".join(lines)


def job(text: str) -> str:
    """The first sentence of a file's comment."""
    words = " ".join(head(text).split("\n\n")[0].split())
    return re.split(r"(?<=[a-z)])\.(?: |$)", words, maxsplit=1)[0]


def equations(text: str) -> str:
    """What a file says of the equations of docs/theory.md that it implements; "" if it says nothing."""
    found = EQUATIONS.search(text)
    return found[1] if found else ""


def numbers(said: str) -> set[int]:
    """Numbers of equations in such a line: (3), or (3) to (5)."""
    found: set[int] = set()
    for first, last in re.findall(r"\((\d+)\)(?: to \((\d+)\))?", said):
        found |= set(range(int(first), int(last or first) + 1))
    return found


def _names(first: str, body: str) -> tuple[str, ...]:
    """What a block at the top level defines."""
    if first.startswith("cdef enum"):
        return tuple(re.findall(r"^\s+(\w+)\s*=", body, re.MULTILINE))
    if first.startswith("cdef struct"):
        return (first.split()[2].rstrip(":"),)
    if first.startswith("cdef extern"):
        declared = re.findall(r'(\w+)\s*(?:"[^"]*")?\s*\(', body)
        return (*declared, *re.findall(r"const double (\w+)", body))
    function = re.match(r"cdef\s+(?:inline\s+)?[\w\s*]*?\b(\w+)\(", first)
    constant = re.match(r"cdef\s+[\w ]+?\b(\w+)\s*=", first)
    found = function or constant
    return (found[1],) if found else ()


def blocks(file: str, text: str) -> Iterator[Block]:
    """Definitions of a file and the names they use; comments and docstrings count for nothing."""
    text = re.sub(r'"""(?:.|\n)*?"""', "", text)
    text = re.sub(r"#.*", "", text)
    lines: list[str] = []
    for line in [*text.split("\n"), "cdef end"]:
        if line[:1].strip() and not line.startswith(")") and lines:
            body = "\n".join(lines)
            calls = re.findall(r"(?<![.\w])([A-Za-z_]\w*)\(", body)
            words = re.findall(r"(?<![.\w])([A-Z][A-Z0-9_]+|tl_\w+)\b", body)
            if lines[0].startswith("cdef"):
                yield Block(file, _names(lines[0], body), frozenset(calls) | frozenset(words))
            lines = []
        lines.append(line)


def defined(sources: Mapping[str, str]) -> dict[str, str]:
    """File of each name."""
    return {name: file for file, text in sources.items() for b in blocks(file, text) for name in b.names}


def upward(sources: Mapping[str, str]) -> list[Upward]:
    """What is used of a file that stands below: none, when the files have the order in which `sources` has them."""
    where, place = defined(sources), {file: i for i, file in enumerate(sources)}
    return [
        Upward(file, b.names[0] if b.names else "", name, where[name])
        for file, text in sources.items()
        for b in blocks(file, text)
        for name in sorted(b.uses & where.keys() - set(b.names))
        if place[where[name]] > place[file]
    ]


def calls(sources: Mapping[str, str]) -> dict[str, list[str]]:
    """Other files whose names each file uses, in the order of the files."""
    where = defined(sources)
    used = {
        file: {where[name] for b in blocks(file, text) for name in b.uses & where.keys()} - {file}
        for file, text in sources.items()
    }
    return {file: [other for other in sources if other in used[file]] for file in sources}


def page() -> str:
    """docs/step_files.md."""
    sources, parts = texts(), groups()
    used = calls(sources)
    group_of = {file: group for group, _, files in parts for file in files}
    out = [
        "# The files of the step", "",
        "Made from the sources in `cython_kernels/step` by",
        "`python -m torqueloop.core.compile.record_sources`; do not edit.", "",
        "A file uses functions, constants and structs of files above it in this table, never of files below",
        "(`order.pxi`; the test `rt_tests/unit/test_step_files.py` reads the sources). Equations are those of",
        "[theory.md](theory.md).", "", "```mermaid", "flowchart BT",
    ]  # fmt: skip
    out += [f'    {group}["<b>{group}</b><br/>{text}"]' for group, text, _ in parts]
    arrows = dict.fromkeys((group_of[a], group_of[b]) for a in sources for b in used[a] if group_of[a] != group_of[b])
    out += [f"    {a} --> {b}" for a, b in arrows]
    out += ["```", ""]
    for group, text, files in parts:
        out += [f"## {group}: {text}", "", "| file | job | equations | uses |", "|---|---|---|---|"]
        for file in files:
            said = equations(sources[file])
            said = said if numbers(said) else said.removeprefix("none: ")
            out.append(f"| `{file}` | {job(sources[file])} | {said} | {', '.join(used[file])} |".replace("|  |", "| |"))
        out.append("")
    return "\n".join(out)
