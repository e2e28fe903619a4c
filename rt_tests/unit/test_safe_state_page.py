"""docs/safe_state.md and docs/disturbances.md against the code: every cause has a row, every test it names exists, and
every kind of fault has a row."""

from __future__ import annotations

import re
from pathlib import Path

from torqueloop.cython_kernels.tick.rig import CAUSES
from torqueloop.hil.rig.assemble.safe_state import SENTENCES
from torqueloop.hil.rig.schema.fault_tables import TARGETS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "safe_state.md").read_text(encoding="utf-8")


DISTURBANCES = (ROOT / "docs" / "disturbances.md").read_text(encoding="utf-8")


def rows(heading: str, page: str = PAGE) -> list[list[str]]:
    """Cells of the tables below a heading."""
    part = page.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in part.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_cause_has_a_row_and_a_sentence() -> None:
    named = [row[0].strip("`") for row in rows("Detectors") if row[0].startswith("`")]
    assert sorted(named) == sorted(set(CAUSES) - {"none"})
    assert set(SENTENCES) == set(CAUSES)


def test_every_row_names_a_test_and_every_test_named_exists() -> None:
    defined = set()
    for file in (ROOT / "rt_tests").rglob("test_*.py"):
        defined |= set(re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE))
    heads = {"cause", "what"}
    for row in rows("Detectors"):
        if row[0] in heads:
            continue
        tests = re.findall(r"`(test_\w+)`", row[-1])
        assert tests, f"{row[0]}: no test"
        assert set(tests) <= defined, f"{row[0]}: {set(tests) - defined} do not exist"


def test_causes_have_the_numbers_of_the_tick() -> None:
    text = (ROOT / "cython_kernels" / "tick" / "tick.pxd").read_text(encoding="utf-8")
    numbers = {n.lower(): int(k) for n, k in re.findall(r"^    CAUSE_(\w+) = (\d+)", text, re.MULTILINE)}
    assert [name for name, _ in sorted(numbers.items(), key=lambda entry: entry[1])] == list(CAUSES)


def test_every_kind_of_fault_is_on_its_page_with_what_it_acts_on() -> None:
    listed = {
        (kind, target)
        for row in rows("Kinds", DISTURBANCES)
        for kind in re.findall(r"`(\w+)`", row[0])
        for target in re.findall(r"`(\w+)`", row[1])
    }
    assert listed == {(kind, target) for target, kinds in TARGETS.items() for kind in kinds}
