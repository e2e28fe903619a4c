"""The files of the step use each other downward only, in the order of order.pxi; each names its equations."""

from __future__ import annotations

import re

import pytest

from torqueloop.core.compile import step_files
from torqueloop.core.compile.step_files import Upward

if not step_files.STEP.is_dir():
    pytest.skip("no sources of the kernels", allow_module_level=True)

TEXTS = step_files.texts()


def test_the_order_has_every_file_of_the_step_once() -> None:
    files = {path.stem for path in step_files.STEP.glob("*.pxi")} - {"order", "sizes"}
    assert sorted(step_files.order()) == sorted(files)
    assert [file for _, _, group in step_files.groups() for file in group] == list(step_files.order())


def test_no_file_of_the_step_uses_what_stands_below_it() -> None:
    assert step_files.upward(TEXTS) == []


def test_the_reader_of_definitions_finds_them() -> None:
    where = step_files.defined(TEXTS)
    assert len(where) > 500
    known = {
        "gather": "rows_generic", "matvec": "step_imports", "TOL_R": "polynomial", "tl_box": "box",
        "STAY": "decide_losses", "REFUSED": "shortened", "stage_eval": "points",
        "each_slide": "each_generic", "advance": "advance",
    }  # fmt: skip
    assert {name: where.get(name) for name in known} == known
    called = step_files.calls(TEXTS)
    assert {"trial", "accept", "decide", "quiet"} <= set(called["advance"]) and called["points"] == []


@pytest.mark.parametrize(
    ("planted", "of"), [("    busy_step(m, s, 1.0)\n", "busy_step"), ("    cdef double x = MAX_SPLITS\n", "MAX_SPLITS"),
                        ("    cdef tl_progress k\n", "tl_progress")],
)  # fmt: skip
def test_a_use_upward_is_seen(planted: str, of: str) -> None:
    text = TEXTS["points"] + f"\n\ncdef void planted(tl_state* s) noexcept nogil:\n{planted}"
    assert step_files.upward({**TEXTS, "points": text}) == [Upward("points", "planted", of, "advance")]


def test_what_only_comments_and_docstrings_say_is_no_use() -> None:
    text = TEXTS["points"] + '\n\ncdef void f() noexcept nogil:\n    """As busy_step(m)."""\n    pass  # advance()\n'
    assert step_files.upward({**TEXTS, "points": text}) == []


def test_every_file_says_which_equations_it_implements_or_why_none() -> None:
    for file, text in TEXTS.items():
        said = step_files.equations(text)
        assert said and (step_files.numbers(said) or re.match(r"none: \w", said)), file


def test_equations_of_the_files_are_in_the_page_which_names_the_files() -> None:
    from theory_page import EQUATIONS, TEXT

    if not TEXT:
        pytest.skip("the manual is in the repository only")
    said = {file: step_files.numbers(step_files.equations(text)) for file, text in TEXTS.items()}
    assert all(found <= set(EQUATIONS) for found in said.values()), said
    table = TEXT.split("## 16.")[1].split("## 17.")[0]
    for numbers, files in re.findall(r"^\| ([^|`]+) \| ([^|]+) \|", table, re.MULTILINE):
        named = step_files.numbers(numbers)
        step = re.findall(r"`(?:step/)?(\w+)\.pxi`", files.split("`locks/")[0])
        if named and step:
            there = set().union(*(said[file] for file in step))
            assert named <= there, f"({sorted(named - there)}) of {step}: not in the comments these files begin with"
