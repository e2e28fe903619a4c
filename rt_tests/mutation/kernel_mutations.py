#!/usr/bin/env python3
"""Errors planted at random in the Cython sources: does a test see a wrong comparison, sign, factor or condition?

    python rt_tests/mutation/kernel_mutations.py --seed N [--count 20] [--folder can] [--list] [--out FILE]

cosmic-ray parses Python only, so this file draws the mutants of .pyx and .pxi files itself: one token of one line is
replaced (OPERATORS). It works in a copy of the sources (build/kernel_mutations), whose kernels are built with -O1. An
error is caught when a test fails, hangs or crashes that passes without it; tests that fail without an error are left
out. The tests are those that import a module of the same folder, and the golden runs. Status 0; 1: less than 90 % were
caught; 2: the tests cannot run. Errors of meaning in Python files: semantic_mutations.py.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COPY = ROOT / "build" / "kernel_mutations"
#: what is copied: the sources, their tests, and what the build needs
PARTS = "core cython_kernels hil configs rt_tests scripts docs examples torqueloop setup.py pyproject.toml".split()
FOLDERS = ("tick", "can", "link", "clock", "controls", "step", "model", "locks", "rings", "vehicle")
#: token -> what stands there instead
OPERATORS = {
    r" < ": " <= ", r" <= ": " < ", r" > ": " >= ", r" >= ": " > ", r" == ": " != ", r" != ": " == ",
    r" \+ ": " - ", r" - ": " + ", r" \* ": " / ", r" and ": " or ", r" or ": " and ", r"\bnot ": "",
    r" \+= ": " -= ", r" -= ": " += ", r"\bfmin\(": "fmax(", r"\bfmax\(": "fmin(", r"\bfabs\(": "(",
    r"\bbreak$": "pass", r"\bcontinue$": "pass", r"\bTrue\b": "False", r"\bFalse\b": "True", r"\b1e3\b": "1e-3",
    r"\b0\.5\b": "1.0", r"\[i\]": "[0]", r" = -": " = ",
}  # fmt: skip
#: lines that compute nothing
NO_CODE = re.compile(r"#|from |import |cimport |(cp?def|ctypedef)\b|$|@")
LEAST = 0.9
#: longest time of the tests of one mutant, as a factor of their time without a mutant, and more [s]
PATIENCE, PATIENCE_S = 4.0, 120.0


@dataclass(frozen=True)
class Mutant:
    """One line of one file, before and after."""

    file: str
    line: int
    before: str
    after: str


def code_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Number and text of the lines that compute: no comment, docstring, import or declaration without a value."""
    quoted = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        text = line.strip()
        if text.count('"""') % 2:
            quoted = not quoted
        elif (
            not quoted and '"""' not in text and not re.match(r"#|from |import |cimport |(cp?def|ctypedef)\b|$|@", text)
        ):
            yield number, line


def mutants(root: Path, folders: tuple[str, ...]) -> list[Mutant]:
    """All that can be made."""
    found = []
    for folder in folders:
        for path in sorted((root / "cython_kernels" / folder).rglob("*.p[yx][xi]")):
            if "topologies" in path.parts:
                continue
            for number, line in code_lines(path):
                code = line.partition("  #")[0]
                for old, new in OPERATORS.items():
                    for match in re.finditer(old, code):
                        after = line[: match.start()] + new + line[match.end() :]
                        found.append(Mutant(str(path.relative_to(root)), number, line, after))
    return found


def environment() -> dict[str, str]:
    """The copy comes first wherever modules are looked for."""
    one = {name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "PYTHONDONTWRITEBYTECODE")}
    return {**os.environ, **one, "PYTHONPATH": str(COPY)}


def build() -> str:
    """Build what has changed; what the compiler said where it fails."""
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    done = subprocess.run(command, cwd=COPY, env=environment(), capture_output=True, text=True)
    return done.stderr[-2000:] if done.returncode else ""


def prepare() -> None:
    """A fresh copy with kernels that are built quickly; what was built before stays in build/."""
    COPY.mkdir(parents=True, exist_ok=True)
    ignore = shutil.ignore_patterns("__pycache__", ".hypothesis", "*.so")
    for name in PARTS:
        source, target = ROOT / name, COPY / name
        if source.is_dir():
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(source, target, symlinks=True, ignore=ignore)
        else:
            shutil.copy(source, target)
    setup = COPY / "setup.py"
    text = setup.read_text(encoding="utf-8")
    assert '"-O3"' in text
    setup.write_text(text.replace('"-O3"', '"-O1"'), encoding="utf-8")
    if said := build():
        raise SystemExit(f"the kernels cannot be built without a mutant: {said}")


def tests_for(file: str) -> list[str]:
    """Test files that import a module of the same folder, and the golden runs."""
    folder = f"torqueloop.cython_kernels.{Path(file).parts[1]}."
    found = [p for part in ("unit", "property", "hil") for p in sorted((ROOT / "rt_tests" / part).glob("test_*.py"))]
    own = [str(p.relative_to(ROOT / "rt_tests")) for p in found if folder in p.read_text(encoding="utf-8")]
    return [*own, *(name for name in ("hil/test_golden_runs.py", "hil/test_rig_virtual.py") if name not in own)]


def failures(tests: list[str], *options: str, limit_s: float | None = None) -> tuple[list[str], float]:
    """The tests that fail, and the seconds that all took."""
    command = [sys.executable, "-m", "pytest", "-c", "../pyproject.toml", "--rootdir", "..", "-q", "--tb=no", "-m",
               "not long and not proof", "-p", "no:cacheprovider", *options, *tests]  # fmt: skip
    begin = os.times().elapsed
    try:
        done = subprocess.run(command, cwd=COPY / "rt_tests", env=environment(), capture_output=True, text=True,
                              timeout=limit_s)  # fmt: skip
    except subprocess.TimeoutExpired:
        return [f"the tests hang: more than {limit_s:.0f} s"], limit_s or 0.0
    if done.returncode < 0:
        return [f"the process died with signal {-done.returncode}"], 0.0
    if done.returncode not in (0, 1, 2):
        raise SystemExit(f"pytest cannot run these tests: {(done.stdout + done.stderr)[-1000:]}")
    return re.findall(r"^(?:FAILED|ERROR) (?:rt_tests/)?(\S+)", done.stdout, re.M), os.times().elapsed - begin


def judged(mutant: Mutant, tests: list[str], options: list[str], plain_s: float) -> str:
    """The test that catches a mutant; "" where none does."""
    path = COPY / mutant.file
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    lines[mutant.line] = lines[mutant.line].replace(mutant.before, mutant.after)
    path.write_text("".join(lines), encoding="utf-8")
    try:
        if said := build():
            return f"the compiler: {said.strip().splitlines()[-1][:100]}"
        found, _ = failures(tests, "-x", *options, limit_s=PATIENCE_S + PATIENCE * plain_s)
        return found[0] if found else ""
    finally:
        path.write_text(text, encoding="utf-8")


def main() -> int:
    """See above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--folder", choices=FOLDERS, action="append")
    parser.add_argument("--list", action="store_true", help="print the draw, plant nothing")
    parser.add_argument("--out", type=Path, default=None, help="JSON of the results")
    given = parser.parse_args()
    possible = mutants(ROOT, tuple(given.folder or FOLDERS))
    drawn = random.Random(given.seed).sample(possible, min(given.count, len(possible)))
    print(f"seed {given.seed}: {len(drawn)} of {len(possible)} possible mutants")
    if given.list:
        for m in drawn:
            print(f"{m.file}:{m.line + 1}\n    {m.before.strip()}\n    {m.after.strip()}")
        return 0
    prepare()
    results: list[dict[str, object]] = []
    plain: dict[str, tuple[list[str], float]] = {}
    for number, m in enumerate(drawn, 1):
        tests, folder = tests_for(m.file), Path(m.file).parts[1]
        if folder not in plain:
            build()
            unsound, took = failures(tests)
            plain[folder] = [f"--deselect=rt_tests/{name}" for name in unsound], took
        by = judged(m, tests, *plain[folder])
        results.append({**asdict(m), "by": by})
        said = by or "SURVIVED"
        print(f"{number:3} {m.file}:{m.line + 1}", m.before.strip(), m.after.strip(), said, sep="\n    ", flush=True)
        if given.out is not None:
            given.out.write_text(json.dumps({"seed": given.seed, "results": results}, indent=1) + "\n")
    caught = sum(bool(r["by"]) for r in results)
    print(f"seed {given.seed}: {caught} of {len(results)} caught")
    return 0 if caught >= LEAST * len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
