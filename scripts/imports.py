#!/usr/bin/env python3
"""Who imports whom, by folder, from the sources as they stand: a table, circles, and a picture.

    scripts/imports.py [--tree DIR] [--out FILE.png]     DIR: another checkout (an older commit: `git worktree add`)

Python files are parsed; of .pyx, .pxd and .pxi the `import` and `cimport` lines are read, an included file counts for
the folder it lies in. Imports for type checkers only count too. Exit status 1 when folders import each other.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("hil", "core", "cython_kernels")
CYTHON = (".pyx", ".pxd", ".pxi")
CYTHON_IMPORT = re.compile(
    r"^\s*(?:from\s+(?P<from>torqueloop[\w.]*)\s+c?import\s+(?P<names>.+)|c?import\s+(?P<plain>torqueloop[\w.]+))",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Arrow:
    """One folder importing another; folders as paths from the root of the tree."""

    source: str
    target: str


def modules_of(path: Path) -> set[str]:
    """Dotted names of our own modules that a file imports."""
    text = path.read_text(encoding="utf-8")
    found: set[str] = set()
    if path.suffix in CYTHON:
        # docstrings and the C text of `cdef extern` blocks are no imports
        text = re.sub(r'("""|\'\'\')(.*?)\1', "", text, flags=re.DOTALL)
        for match in CYTHON_IMPORT.finditer(text):
            found.add(match["from"] or match["plain"])
            names = (match["names"] or "").strip("() ").split(",")
            found |= {f"{match['from']}.{name.split()[0]}" for name in names if match["from"] and name.strip()}
        return found
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {name for name in found if name.split(".")[0] == "torqueloop"}


def folder_of(tree: Path, module: str) -> str | None:
    """Folder of a module or package of the tree; None for a name inside a module, and for the root."""
    path = Path(*module.split(".")[1:])
    # a module comes before a folder of its name that is no package (page.py beside page/)
    if any((tree / path).with_suffix(suffix).exists() for suffix in (".py", *CYTHON)):
        return path.parent.as_posix()
    if (tree / path).is_dir() and path.parts:
        # the package itself stands for the folder only where something of it is named by its __init__
        return path.as_posix()
    return None


def arrows(tree: Path) -> Counter[Arrow]:
    """Arrows between different folders, with the number of files that make each."""
    found: Counter[Arrow] = Counter()
    for room in ROOMS:
        for path in sorted((tree / room).rglob("*")):
            if path.suffix not in (".py", *CYTHON):
                continue
            source = path.parent.relative_to(tree).as_posix()
            named = modules_of(path)
            # of "a.b.c" and "a.b" the longer name says where it lies
            precise = {m for m in named if not any(o.startswith(m + ".") and folder_of(tree, o) for o in named)}
            targets = {folder_of(tree, m) for m in precise} - {None, source}
            found.update(Arrow(source, target) for target in targets if target and target.split("/")[0] in ROOMS)
    return found


def circles(found: Iterable[Arrow]) -> list[list[str]]:
    """Groups of folders that reach each other (Tarjan: strongly connected components of more than one)."""
    nexts: dict[str, list[str]] = {}
    for arrow in found:
        nexts.setdefault(arrow.source, []).append(arrow.target)
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in nexts.get(node, ()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            group = [stack.pop()]
            while group[-1] != node:
                group.append(stack.pop())
            if len(group) > 1:
                groups.append(sorted(group))

    for node in list(nexts):
        if node not in index:
            visit(node)
    return groups


def files_in(tree: Path) -> dict[str, int]:
    """Folder -> number of source files directly in it."""
    paths = (p for room in ROOMS for p in (tree / room).rglob("*") if p.suffix in (".py", *CYTHON))
    return dict(Counter(p.parent.relative_to(tree).as_posix() for p in paths))


def depth(found: Iterable[Arrow]) -> dict[str, int]:
    """Longest way down from each folder; those of a circle are as deep as each other."""
    found = list(found)
    head = {folder: group[0] for group in circles(found) for folder in group}
    nexts: dict[str, set[str]] = {}
    for arrow in found:
        source, target = head.get(arrow.source, arrow.source), head.get(arrow.target, arrow.target)
        nexts.setdefault(source, set()).update({target} - {source})

    def down(folder: str) -> int:
        return 1 + max((down(other) for other in nexts.get(folder, ())), default=-1)

    folders = {arrow.source for arrow in found} | {arrow.target for arrow in found}
    return {folder: down(head.get(folder, folder)) for folder in folders}


def picture(found: Mapping[Arrow, int], sizes: Mapping[str, int], out: Path) -> None:
    """Rooms as columns, folders as boxes, those that import above those imported; red: in a circle."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.patches import FancyArrowPatch

    bad = [set(group) for group in circles(found)]
    deep = depth(found)
    columns = {
        room: sorted((f for f in sizes if f.split("/")[0] == room and f in deep), key=lambda f: (-deep[f], f))
        for room in ROOMS
    }
    tallest = max(len(c) for c in columns.values())
    place = {
        folder: (4.0 * x, -(i + 0.5) * tallest / len(column))
        for x, column in enumerate(columns.values())
        for i, folder in enumerate(column)
    }
    figure, axes = pyplot.subplots(figsize=(13, 0.62 * tallest + 1.5), layout="constrained")
    for arrow in found:
        (x0, y0), (x1, y1) = place[arrow.source], place[arrow.target]
        circle = any({arrow.source, arrow.target} <= group for group in bad)
        same = x0 == x1
        start, end = ((x0 + 0.85, y0), (x1 + 0.85, y1)) if same else ((x0 + 0.85, y0), (x1 - 0.85, y1))
        axes.add_patch(
            FancyArrowPatch(
                start,
                end,
                shrinkA=0,
                shrinkB=0,
                connectionstyle=f"arc3,rad={(-0.4 if y1 < y0 else 0.4) if same else 0.0}",
                arrowstyle="-|>",
                mutation_scale=9,
                linewidth=1.6 if circle else 0.7,
                color="#c62828" if circle else "#90a4ae" if not same else "#5c6bc0",
                zorder=2 if circle else 1,
            )
        )
    for x, y, folder in ((*at, name) for name, at in place.items()):
        label = f"{folder.split('/', 1)[-1] if '/' in folder else folder}  ({sizes[folder]})"
        box = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": "#37474f"}
        axes.text(x, y, label, ha="center", va="center", fontsize=9, bbox=box, zorder=3)
    for x, room in enumerate(ROOMS):
        axes.text(4.0 * x, 0.6, f"{room}/", ha="center", fontsize=13, fontweight="bold")
    axes.set_xlim(-1.8, 4.0 * (len(ROOMS) - 1) + 2.6)
    axes.set_ylim(-tallest - 0.3, 1.2)
    axes.axis("off")
    text = f"{len(deep)} folders (files in each), {len(found)} arrows, {len(bad)} circles"
    axes.set_title(text, fontsize=10, color="#c62828" if bad else "#37474f")
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=110)
    pyplot.close(figure)


def main() -> int:
    """Entry."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=Path, default=ROOT, help="root of the checkout (default: this one)")
    parser.add_argument("--out", type=Path, help="draw the picture (needs matplotlib)")
    given = parser.parse_args()
    found = arrows(given.tree)
    for source in sorted({arrow.source for arrow in found}):
        targets = sorted((a.target, n) for a, n in found.items() if a.source == source)
        print(f"{source:28s} -> " + ", ".join(f"{target} {n}" for target, n in targets))
    for group in circles(found):
        print("circle: " + ", ".join(group))
    if given.out is not None:
        picture(found, files_in(given.tree), given.out)
    return 1 if circles(found) else 0


if __name__ == "__main__":
    raise SystemExit(main())
