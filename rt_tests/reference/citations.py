"""Draws citations of configs, docs and code at random, each with what to look up: a check before a release.

    rt_tests/reference/citations.py                  40 of them, another draw each day
    rt_tests/reference/citations.py --seed 7 -n 65   the same draw again
    rt_tests/reference/citations.py --count          how many there are, by room

A citation is a line that names a work (an author and a year, a doi, a figure, equation, table, section or page of one),
or a `source` of a configuration that is neither assumed nor derived.
"""

from __future__ import annotations

import argparse
import datetime
import random
import re
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("configs", "core", "cython_kernels", "hil", "docs", "README.md")
SUFFIXES = {".toml", ".csv", ".md", ".py", ".pyx", ".pxd", ".pxi", ".dbc"}
_YEAR = r"(?:19[3-9]\d|20[0-2]\d)"
#: "Otter, Dempsey, Schlegel 2000", "Heywood 1988", "Schweiger et al. (2003)"
AUTHOR = re.compile(rf"\b[A-Z][a-zäöüé]{{2,}}(?:(?:,| and)? [A-Z]?[a-zäöüé]+){{0,3}}(?: et al\.)?,? \(?{_YEAR}\b")
#: "doi: 10.1155/2013/206539", "fig. 17", "equations 3..14"; `Table1D` is a class, and a section is one of the same page
PLACE = re.compile(
    r"\b(?:doi[ :]+[^\s),;]+|(?:eqs?\.|figs?\.|equations?|table|sect\.|pp?\.) \(?\d[\d.]*)", re.IGNORECASE
)
SOURCE = re.compile(r'^\s*source[\w.]* = "+(?!(?:assumed|derived)\b)([^"]+)')
#: dates of measurements and of files are no works
NO_WORK = re.compile(rf"{_YEAR}-\d\d-\d\d|[Cc]opyright|\(c\) ")


@dataclass(frozen=True)
class Citation:
    """A line that names a work."""

    file: Path
    line: int
    text: str
    #: the words that make it one: what to look up
    looked_up: tuple[str, ...]


def citations(file: Path) -> list[Citation]:
    """Those of one file."""
    found = []
    for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        words = [m.group(0).strip() for pattern in (AUTHOR, PLACE) for m in pattern.finditer(line)]
        if not words and file.suffix == ".toml" and (source := SOURCE.match(line)):
            words = [source.group(1)]
        if words and not NO_WORK.search(line):
            found.append(Citation(file, number, " ".join(line.split()), tuple(words)))
    return found


def everywhere() -> list[Citation]:
    """Those of all files that are under version control."""
    listed = subprocess.run(["git", "ls-files", *ROOMS], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    files = [ROOT / name for name in listed.splitlines() if Path(name).suffix in SUFFIXES]
    return [citation for file in files for citation in citations(file)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=40, help="how many are drawn")
    parser.add_argument("--seed", type=int, default=datetime.date.today().toordinal(), help="default: today")
    parser.add_argument("--count", action="store_true", help="only count them, by room")
    options = parser.parse_args()
    found = everywhere()
    if options.count:
        rooms = Counter(c.file.relative_to(ROOT).parts[0] for c in found)
        print("\n".join(f"{n:5d}  {room}" for room, n in rooms.most_common()), f"\n{len(found):5d}  in all")
        return
    drawn = random.Random(options.seed).sample(found, min(options.n, len(found)))
    for number, citation in enumerate(drawn, 1):
        place = f"{citation.file.relative_to(ROOT)}:{citation.line}"
        print(f"{number:3d}. {place}\n     {citation.text[:300]}\n     look up: {'; '.join(citation.looked_up)}")
    print(f"\n{len(drawn)} of {len(found)} citations, seed {options.seed}")


if __name__ == "__main__":
    main()
