"""Which test runs which line of core/ and hil/, as build/touched keeps it, and which tests may see an error of a line.

A warm process (warm.py) measures each test file once with coverage's contexts: one for each test. What a fixture or a
cache shares is recorded for the first test that asks for it, so the other tests of such a file are candidates as well;
they come last.

A test file is measured again when it changes. A module that changes does not need that: its source is kept as it was
measured, and lines are followed through the differences. Whether a test reaches a line then differs only where the
change itself led it elsewhere.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import Any

from warm import run_job, stop

#: a test file is measured for so long; its tests after that are left out [s]
FILE_LIMIT_S = 120.0
#: what runs while modules are imported and tests are collected
COLLECTION = "collection"
#: golden runs compare what people read with a second implementation; they are made once for all tests of a file
GOLDEN = "test_golden_"
#: results of one test that other tests of its file look at
SHARES = re.compile(r"""scope=["'](?:module|class|package|session)|^@(?:functools\.)?(?:lru_)?cache|golden""", re.M)


#: (tag, first and end of the old lines, first and end of the new lines, all counted from 0), see difflib
Changes = tuple[tuple[str, int, int, int, int], ...]


@cache
def digest(path: Path) -> str:
    """Of a file that may be gone."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path.is_file() else ""


@cache
def changes(old: Path, new: Path) -> Changes:
    """From one version of a module to another."""
    a, b = (path.read_text(encoding="utf-8").splitlines() for path in (old, new))
    return tuple(SequenceMatcher(None, a, b, autojunk=False).get_opcodes())


def followed(mask: int, through: Changes) -> int:
    """Lines as bits of the new version. Changed lines are run by what ran those in their place or beside them."""
    found = 0
    for tag, a, b, c, d in through:
        if tag == "equal":
            found |= (mask >> (a + 1) & (1 << b - a) - 1) << c + 1
        elif mask >> a & (1 << b - a + 2) - 1:
            found |= (1 << d - c) - 1 << c + 1
    return found


class Touched:
    """What all test files run, measured again where a test file has changed."""

    def __init__(self, copy: Path, store: Path, modules: Iterable[str], at_once: int) -> None:
        self.root, asked = copy, set(modules)
        #: test -> (duration [s], outcome)
        self.tests: dict[str, tuple[float, str]] = {}
        #: module -> test, or test file of which it is the collection -> lines as bits of an integer
        self.lines: dict[str, dict[str, int]] = {}
        self._texts: dict[str, str] = {}
        self._sources = store / "sources"
        self._sources.mkdir(parents=True, exist_ok=True)
        for source in (path for part in ("core", "hil") for path in (copy / part).rglob("*.py")):
            if not (kept := self._sources / digest(source)).exists():
                kept.write_bytes(source.read_bytes())
        folders = ("unit", "property", "reference", "hil")
        files = [
            str(p.relative_to(copy / "rt_tests"))
            for f in folders
            for p in sorted((copy / "rt_tests" / f).glob("test_*.py"))
        ]
        places = {name: store / f"{name.replace('/', '+')}.json" for name in (COLLECTION, *files)}
        new = {name: str(place) for name, place in places.items() if self._known(place, asked) is None}
        if new:
            print(f"measures {len(new)} test files", flush=True)
            run_job(copy, "measuring", {"measure": new, "at_once": at_once}, limit_s=FILE_LIMIT_S * len(new))
        for name, place in places.items():
            if (known := self._known(place, asked)) is None:
                print(f"cannot be measured, left out: {name}", flush=True)
                continue
            self.tests |= {test: tuple(how) for test, how in known["tests"].items()}
            for module in {name for name in asked & set(known["lines"]) if (copy / name).is_file()}:
                through = changes(self._sources / known["digests"][module], copy / module)
                bits = {test: followed(int(mask, 16), through) for test, mask in known["lines"][module].items()}
                self.lines.setdefault(module, {}).update(bits)
        stop(copy, "measuring")

    def _known(self, place: Path, asked: set[str]) -> dict[str, Any] | None:
        """What is known of a test file, if it is as it was and the modules asked for can be followed."""
        if not place.exists():
            return None
        known: dict[str, Any] = json.loads(place.read_text())
        same = all(
            digest(self.root / p) == d if p.startswith("rt_tests") else (self._sources / d).exists()
            for p, d in known["digests"].items() if p in asked or p.startswith("rt_tests")
        )  # fmt: skip
        return known if same else None

    def candidates(self, module: str, code: str, line: int) -> tuple[list[str], list[str]]:
        """Tests that may see an error of a line, in the order they are asked: (those for which the process that has
        collected all tests will do, those that have to be imported and collected with the error). They run the line,
        or share results with tests that do. Of a line that is part of the import: tests that run any function of its
        module."""
        lines, inside = statement(code, line)
        known = self.lines.get(module, {})
        touching = {test for test, mask in known.items() if mask & sum(1 << k for k in lines)}
        importing = not inside or "" in touching
        if importing:
            touching = set(known)
        files = {test.partition("::")[0] for test in touching}
        sharing = {file for file in files if file and (file in touching or self._shares(file))}
        passed = [(took, test) for test, (took, outcome) in self.tests.items() if outcome == "passed"]
        own = [(took, test) for took, test in passed if test in touching]
        rest = [(took, test) for took, test in passed if test not in touching and test.partition("::")[0] in sharing]
        found = [*self.ranked(own, module), *self.ranked(rest, module)]
        late = {test for test in found if importing or test.partition("::")[0] in touching}
        return [test for test in found if test not in late], [test for test in found if test in late]

    def _text(self, file: str) -> str:
        if file not in self._texts:
            self._texts[file] = (self.root / file).read_text(encoding="utf-8")
        return self._texts[file]

    def _shares(self, file: str) -> bool:
        """Tests of a file look at results of each other."""
        return SHARES.search(self._text(file)) is not None

    def _rank(self, file: str, module: str) -> int:
        """Files that import a module come first, then golden runs, which compare what people read."""
        folder, _, name = module.removesuffix(".py").replace("/", ".").rpartition(".")
        own = rf"torqueloop\.{folder}(\.{name}\b| import [^\n]*\b{name}\b)"
        return 0 if re.search(own, self._text(file)) else 1 if GOLDEN in file else 2

    def ranked(self, tests: list[tuple[float, str]], module: str) -> list[str]:
        """Tests by the rank of their file, the quickest first; those that share results stay together, and further
        variants of a parametrised test come after all other tests."""
        groups: dict[str, list[tuple[float, str]]] = {}
        for took, test in tests:
            file = test.partition("::")[0]
            groups.setdefault(file if self._shares(file) else test, []).append((took, test))
        seen: dict[str, int] = {}
        keyed = []
        for took, group in sorted((sum(took for took, _ in group), group) for group in groups.values()):
            function = group[0][1].partition("[")[0]
            seen[function] = seen.get(function, 0) + 1
            rank = self._rank(function.partition("::")[0], module)
            keyed.append((seen[function] > 2, rank, took, [test for _, test in group]))
        return [test for *_, group in sorted(keyed) for test in group]


def statement(code: str, line: int) -> tuple[range, bool]:
    """(lines of the statement a line belongs to, of a compound one its head; it is inside a function)."""
    best, inside = range(line, line + 1), False
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            inside |= isinstance(node, ast.FunctionDef) and line > last
            if node.lineno <= line <= last:
                best = range(node.lineno, last + 1)
    return best, inside
