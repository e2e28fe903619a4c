"""Every field of the state says what it is, in which unit, and which file of the kernel it is written by."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

KERNELS = Path(__file__).resolve().parents[2] / "cython_kernels"
if not (KERNELS / "model" / "model.pxd").is_file():
    pytest.skip("no sources of the kernels", allow_module_level=True)

#: what a number of the state may be in; "its unit": each of them has one of its own
UNITS = re.compile(
    r"\b(rad|m|N\.m|N|J|K|Pa|s|doubles|fraction|level|number|units?)\b|\b(0|1|-1): |1/s|MODE_|TL_C_|integers|steps? "
)


def struct(name: str) -> list[str]:
    text = (KERNELS / "model" / "model.pxd").read_text(encoding="utf-8")
    body = text.split(f"cdef struct {name}:\n", 1)[1]
    return body[: re.search(r"^\S", body, re.MULTILINE).start()].splitlines()  # type: ignore[union-attr]


def fields(lines: list[str]) -> list[tuple[str, str, str, str]]:
    """Type, name, comment and the comment that the group begins with. A comment may take another line."""
    found: list[tuple[str, str, str, str]] = []
    group = ""
    for line in lines:
        if re.match(r"^    # ---- ", line):
            group = line
        elif line.strip().startswith("#") and found:
            found[-1] = (*found[-1][:2], found[-1][2] + line.strip(" #"), found[-1][3])
        elif line.strip():
            declared, _, comment = line.partition("#")
            kind, name = declared.split("[")[0].replace("*", "* ").rsplit(None, 1)
            found.append((kind.strip(), name, comment, group))
    return found


STATE = fields(struct("tl_state"))
#: texts of the kernel's files by name; two folders may have one of the same name
TEXTS: dict[str, str] = {}
for room in ("step", "model", "locks", "kernel"):
    for path in (KERNELS / room).glob("*.p[xy]*"):
        if path.suffix in (".pxi", ".pyx", ".pxd"):
            TEXTS[path.name] = TEXTS.get(path.name, "") + path.read_text(encoding="utf-8")


def written_in(comment: str) -> list[str]:
    return re.findall(r"\b\w+\.(?:pxi|pyx|pxd)\b", comment)


def wrong(name: str, comment: str, group: str) -> str:
    """What is missing in what a field says of itself; nothing: it is complete."""
    said = written_in(comment) or written_in(group)
    if len(comment.split("(")[0].split()) + len(comment.split()) < 3:
        return "no meaning"
    if not said:
        return "no file"
    unknown = [file for file in said if file not in TEXTS]
    if unknown:
        return f"no such file: {unknown}"
    if not any(re.search(rf"(?:\bs|\bself\.ptr|\(s\))(?:\.|->){name}\b", TEXTS[file]) for file in said):
        return f"none of {said} has it"
    return ""


def test_every_field_says_what_it_is_and_who_writes_it() -> None:
    assert len(STATE) > 90
    said = {name: wrong(name, comment, group) for _, name, comment, group in STATE}
    assert {name: text for name, text in said.items() if text} == {}


def test_every_number_has_a_unit() -> None:
    numbers = [(name, text) for kind, name, text, _ in STATE if kind.startswith("double") and "scratch." not in text]
    assert len(numbers) > 45
    assert [name for name, text in numbers if not UNITS.search(text)] == []


@pytest.mark.parametrize(
    ("comment", "group", "text"),
    [("", "(trial.pxi)", "no meaning"), (" (n) speeds of it", "", "no file"),
     (" (n) speeds of it", "(trail.pxi)", "no such file"),
     (" (n) speeds of it (thermal.pxi)", "(trial.pxi)", "none of")],
)  # fmt: skip
def test_what_a_field_leaves_out_is_seen(comment: str, group: str, text: str) -> None:
    assert wrong("um", comment, group).startswith(text)
