"""Names: their order, and what becomes of a name or text of a file where it goes into source, a file name or a cell."""

from __future__ import annotations

import re
from collections.abc import Iterable

#: with one of these at its beginning a spreadsheet takes the text of a cell as a formula
FORMULA = "=+-@\t\r"


def natural(name: str) -> tuple[tuple[int, int | str], ...]:
    """Sort key that puts C4 before C11."""
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in re.split(r"(\d+)", name) if part)


def identifier(text: str) -> str:
    """A Python identifier (also a file name without a folder) of a name: other characters become _."""
    word = re.sub(r"\W", "_", text, flags=re.ASCII)
    return word if not word[:1].isdigit() else f"_{word}"


def remark(text: str) -> str:
    """A text that is put into a comment or docstring of source: it ends neither, and no line of it is code."""
    return re.sub(r"[^\w ./+-]", "_", text, flags=re.ASCII)[:200]


def cell(text: str) -> str:
    """A text as a cell of a table: a spreadsheet takes it as text, never as a formula."""
    return f"'{text}" if text.startswith(tuple(FORMULA)) else text


def csv_row(cells: Iterable[str]) -> str:
    """Texts as one row of a CSV file, without the end of its line."""
    quoted = (cell(text) for text in cells)
    return ",".join(f'"{t.replace(chr(34), chr(34) * 2)}"' if re.search(r'[",\r\n]', t) else t for t in quoted)
