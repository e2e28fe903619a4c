"""Numbers of a page's figures: how they are thinned and packed, against a reader that shares no code with it."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.append(str(Path(__file__).resolve().parents[1] / "hil"))
from page_figures import PageFigures

from torqueloop.hil.report.pages import render
from torqueloop.hil.views.figure import POINTS, Column, Figure, Figures, Line, Panel


def page_of(columns: dict[str, np.ndarray], t: np.ndarray, tick_s: float = 1e-3) -> PageFigures:
    """A page with one block."""
    figures = Figures()
    block = figures.block(t, tick_s)
    lines = [Line(name, block.add(name, y)) for name, y in columns.items()]
    figures.add(Figure("all", [Panel("", lines)]))
    return PageFigures(render("page.html", "x", True, figures))


def test_packed_numbers_come_back_to_a_millionth_of_their_range() -> None:
    rng = np.random.default_rng(3)
    t = (np.arange(5000) + 1) * 1e-3
    holes = np.sin(t)
    holes[[0, 7, 4999]] = np.nan
    columns = {
        "smooth": 1e5 * np.sin(5 * t) - 3e5,
        "noise": rng.normal(size=5000),
        "steps": np.where(t < 2.5, -1e-9, 1e-9),
        "whole": rng.integers(-3, 9, 5000).astype(float),
        "constant": np.full(5000, 0.1),
        "holes": holes,
        "none": np.full(5000, np.nan),
        "huge": 1e300 * t,
    }
    page = page_of(columns, t)
    for name, y in columns.items():
        found, exact = page.by_name(name)
        assert (np.isnan(found) == np.isnan(y)).all(), name
        if np.isfinite(y).any():
            spread = np.nanmax(y) - np.nanmin(y)
            assert np.nanmax(np.abs(found - y)) <= 0.51e-6 * spread + 1e-15 * np.nanmax(np.abs(y)), name
            assert exact <= 0.51e-6 * spread or name == "whole"
    assert (page.by_name("whole")[0] == columns["whole"]).all() and (page.by_name("constant")[0] == 0.1).all()
    assert page.by_name("t")[0] == pytest.approx(t, abs=1e-9)


def test_of_a_long_recording_minimum_and_maximum_of_each_group_are_kept() -> None:
    rng = np.random.default_rng(5)
    n = 7 * POINTS + 3
    y = rng.normal(size=n).cumsum()
    y[123_456] = 1e4
    t = (np.arange(n) + 1) * 1e-3
    page = page_of({"y": y}, t)
    group = page.blocks[0]["group"]
    found, exact = page.by_name("y")
    assert len(found) <= POINTS + 2 and found.max() == pytest.approx(1e4, abs=exact)
    for k in (0, 1, 17, 8000, n // group - 1):
        own = y[k * group : (k + 1) * group]
        pair = [own.min(), own.max()] if own.argmin() < own.argmax() else [own.max(), own.min()]
        assert found[2 * k : 2 * k + 2] == pytest.approx(pair, abs=exact)
        assert page.by_name("t")[0][2 * k] == pytest.approx(t[k * group])


NAN = math.nan


@pytest.mark.parametrize(
    ("y", "kept"),
    [([NAN, 1.0, 3.0, 5.0, NAN, 2.0], [1, 3, 5, 2, 2]), ([3.0, NAN, 1.0, 2.0, 5.0, NAN], [3, 1, 2, 5, NAN]),
     ([NAN, NAN, NAN, 7.0, 7.0, NAN], [NAN, NAN, 7, 7, NAN]), ([1.0, 2.0, 3.0, -4.0, 9.0, -5.0], [1, 3, 9, -5, -5])],
)  # fmt: skip
def test_of_three_samples_the_least_and_the_largest_are_kept_in_their_order(
    y: list[float], kept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two groups of three, and the last sample; a sample without a number is none of them."""
    monkeypatch.setattr("torqueloop.hil.views.figure.POINTS", 4)
    block = Figures().block(np.arange(1.0, 7.0), 1.0)
    assert block.group == 3 and block.columns[0].tolist() == [1, 2, 4, 5, 6]
    assert block.columns[block.add("y", np.array(y)).number].tolist() == pytest.approx(kept, nan_ok=True)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_no_peak_is_lost_by_thinning(data: st.DataObject) -> None:
    """Of any recording, with samples without a number: least and largest value, at their times but for a group."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("torqueloop.hil.views.figure.POINTS", 20)
        n = data.draw(st.integers(21, 400), "samples")
        y = np.array(data.draw(st.lists(st.floats(-1e3, 1e3) | st.just(math.nan), min_size=n, max_size=n), "values"))
        t = np.arange(1, n + 1) * 0.01
        block = Figures().block(t, 0.01)
        column = block.columns[block.add("y", y).number]
    x = block.columns[0]
    assert len(column) == len(x) <= 21 and x[0] == t[0] and x[-1] == t[-1] and (np.diff(x) >= 0).all()
    for k in range(0, n, block.group):
        own, kept = y[k : k + block.group], column[2 * (k // block.group) : 2 * (k // block.group) + 2]
        if np.isnan(own).all():
            assert np.isnan(kept).all()
            continue
        assert sorted(kept) == [np.nanmin(own), np.nanmax(own)]
        assert (kept[0] <= kept[1]) == (np.nanargmin(own) <= np.nanargmax(own)) or kept[0] == kept[1]
        stand = x[2 * (k // block.group) : 2 * (k // block.group) + 2]
        assert t[k] <= stand[0] <= stand[1] <= t[min(k + block.group, n) - 1]


def test_columns_of_several_blocks_are_kept_apart() -> None:
    """Each line has the times of its own block, in the page and in a picture; a name that comes again is its column."""
    figures = Figures()
    first, second = figures.block(np.arange(3.0), 1.0), figures.block(np.arange(3.0) / 8 + 5.0, 0.125)
    columns = [first.add("a", np.array([1.0, 2.0, 4.0]), "Nm"), second.add("b", np.array([7.0, 5.0, 6.0]), "Pa"),
               second.add("c", np.array([0.5, 0.25, 9.0]))]  # fmt: skip
    assert columns == [Column(0, 1), Column(1, 1), Column(1, 2)] and second.add("b", np.zeros(3)) == columns[1]
    lines = [Line(name, column, factor=-2.0) for name, column in zip("abc", columns, strict=True)]
    figures.add(Figure("all", [Panel("", lines)]))
    page = PageFigures(render("page.html", "x", True, figures))
    wanted = {"a": ([0, 1, 2], [-2, -4, -8]), "b": ([5, 5.125, 5.25], [-14, -10, -12]),
              "c": ([5, 5.125, 5.25], [-1, -0.5, -18])}  # fmt: skip
    for line, drawn in zip(lines, page.lines("all"), strict=True):
        x, y = wanted[line.label]
        assert list(drawn.x) == pytest.approx(x, abs=1e-5) and list(drawn.y) == pytest.approx(y, abs=1e-4)
        assert [list(part) for part in figures.values(line)] == [x, y]
    units = [[unit for _, unit, *_ in block["columns"]] for block in page.blocks]
    assert units == [["s", "Nm"], ["s", "Pa", ""]]
