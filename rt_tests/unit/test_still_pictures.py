"""Pictures of figures: what matplotlib draws is what the figure says, for each style of line, span and mark."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from torqueloop.hil.views.figure import Figure, Figures, Line, Mark, Panel, Span
from torqueloop.hil.views.still import _line, draw

pyplot = pytest.importorskip("matplotlib.pyplot", reason="pictures need matplotlib")


@pytest.fixture
def ax() -> Any:
    figure, axes = pyplot.subplots()
    yield axes
    pyplot.close(figure)


def test_bars_reach_from_x_to_their_right_ends(ax: Any) -> None:
    x, right, y = [1.0, 2.0, 4.0], [2.0, 4.0, 8.0], [3.0, 1.0, 5.0]
    _line(Figures(), Line("n", y, "green", "bars", 2.0, x, right), ax)
    bars = [(b.get_x(), b.get_x() + b.get_width(), b.get_y(), b.get_height()) for b in ax.patches]
    assert bars == [(a, b, 0.0, 2.0 * h) for a, b, h in zip(x, right, y, strict=True)]


@pytest.mark.parametrize(("style", "line", "marker"), [("line", "-", "None"), ("dash", "--", "None"),
                                                       ("dots", "None", "."), ("rings", "None", "o")])  # fmt: skip
def test_a_line_has_the_times_of_its_block_and_the_unit_it_is_shown_in(
    ax: Any, style: str, line: str, marker: str
) -> None:
    figures = Figures()
    t, p = np.arange(50) * 0.01, np.linspace(1e5, 9e5, 50)
    first, second = figures.block(t + 100.0, 1e-3), figures.block(t, 1e-3)
    first.add("p", -p, "Pa")
    _line(figures, Line("p", second.add("p", p, "Pa"), "blue", style, 1e-5), ax)
    (drawn,) = ax.lines
    np.testing.assert_allclose(drawn.get_xdata(), t)
    np.testing.assert_allclose(drawn.get_ydata(), p * 1e-5)
    assert (drawn.get_linestyle(), drawn.get_marker(), drawn.get_label()) == (line, marker, "p")


def test_a_step_holds_its_value_up_to_its_time(ax: Any) -> None:
    _line(Figures(), Line("s", [1.0, 4.0, 2.0], "blue", "step", 1.0, [0.0, 1.0, 3.0]), ax)
    (drawn,) = ax.lines
    assert drawn.get_drawstyle() == "steps-pre" and drawn.get_xdata().tolist() == [0.0, 1.0, 3.0]


def test_a_picture_is_as_high_as_its_panels(tmp_path: Path) -> None:
    """11 inches wide; 90 pixels of a panel are an inch, and the axis below takes 0.8; 72 points are an inch."""
    panels = [Panel("rad/s", [Line("a", [1.0, 2.0], x=[0.0, 1.0])], height=h) for h in (180, 90, 45)]
    for shown, inches in ((panels, 4.3), (panels[:1], 2.8)):
        text = draw(Figures(), Figure("f", shown), tmp_path / "f.svg").read_text(encoding="utf-8")
        head = re.search(r"<svg [^>]*>", text)
        assert head is not None
        size = {name: float(x) for name, x in re.findall(r'(width|height)="([\d.]+)pt"', head[0])}
        assert size == pytest.approx({"width": 792.0, "height": 72 * inches}, abs=0.01)


@pytest.fixture
def pictured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The axes of a picture as it is written."""
    made: list[Any] = []
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda picture, *_, **__: made.append(picture))

    def axes(figures: Figures, figure: Figure) -> list[Any]:
        draw(figures, figure, tmp_path / "f.svg")
        return list(made.pop().axes)

    return axes


def boxes(ax: Any) -> list[tuple[float, float, float]]:
    """(begin, end, middle in height) of what is filled."""
    return [(b.get_x(), b.get_x() + b.get_width(), b.get_y() + b.get_height() / 2) for b in ax.patches]


def test_a_picture_shows_the_time_of_its_figure_gears_rows_marks_and_limits(pictured: Any) -> None:
    figures = Figures()
    figures.gears += [(1.0, 2.5, "1"), (3.0, 6.0, "2")]
    rows = [("C4", [Span(0.5, 2.0, "stuck"), Span(2.0, 2.25, "slip")]), ("C5", [Span(3.5, 7.0, "free")])]
    line = Line("a", [1.0, 2.0], x=[0.0, 8.0])
    panels = [Panel("Nm", [line], title="above", low=-2.0, high=7.0), Panel(rows=rows), Panel("m", [line], low=-1.0),
              Panel("s", [line], high=5.0)]  # fmt: skip
    marks = [Mark(4.5, "here"), Mark(5.5, "there")]
    above, states, low, high = pictured(figures, Figure("f", panels, begin=0.25, end=7.5, marks=marks))
    for ax in (above, states, low, high):
        assert ax.get_xlim() == (0.25, 7.5)
        assert boxes(ax)[:2] == [(1.0, 2.5, 0.5), (3.0, 6.0, 0.5)], "gears are shaded"
        assert [at.get_xdata()[0] for at in ax.lines if at.get_label().startswith("_")] == [4.5, 5.5]
    # the first row above
    assert boxes(states)[2:] == [pytest.approx(box) for box in ((0.5, 2.0, 0), (2.0, 2.25, 0), (3.5, 7.0, 1))]
    assert states.get_ylim() == (1.5, -0.5) and [t.get_text() for t in states.get_yticklabels()] == ["C4", "C5"]
    assert above.get_ylim() == (-2.0, 7.0) and (above.get_ylabel(), above.get_title(loc="left")) == ("Nm", "above")
    assert low.get_ylim()[0] == -1.0 and high.get_ylim()[1] == 5.0
    assert [ax.get_xlabel() for ax in (above, states, low, high)] == ["", "", "", "time  [s]"]


def test_a_figure_over_something_else_than_time_has_no_gears_and_its_own_axes(pictured: Any) -> None:
    figures = Figures()
    figures.gears += [(1.0, 2.5, "1")]
    panel = Panel("ticks", [Line("n", [1.0, 100.0], style="bars", x=[1.0, 2.0], right=[2.0, 5.0])])
    (ax,) = pictured(figures, Figure("f", [panel], x="µs", log=True))
    assert [box[:2] for box in boxes(ax)] == [(1.0, 2.0), (2.0, 5.0)]
    assert (ax.get_xlabel(), ax.get_xscale(), ax.get_yscale()) == ("µs", "log", "log")
    (ax,) = pictured(figures, Figure("f", [panel], gears=False))
    assert len(boxes(ax)) == 2 and ax.get_xscale() == "linear"
    assert ax.get_xlim()[0] < 1.0 < 5.0 < ax.get_xlim()[1], "all of it, where no part is asked for"
