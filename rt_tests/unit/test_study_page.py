"""Numbers and figures of the page of a study, computed a second time from its runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from torqueloop.hil.study.page import FIFTHS, _dots, _maps, _window, rank_correlation
from torqueloop.hil.study.repeats import points, table
from torqueloop.hil.study.work import Line, Outcome


def outcomes(**columns: Any) -> list[Outcome]:
    """Runs with these values; names in capitals are metrics."""
    n = len(next(iter(columns.values())))
    made = []
    for k in range(n):
        values = {c: float(x[k]) for c, x in columns.items() if not c.isupper()}
        metrics = {c: float(x[k]) for c, x in columns.items() if c.isupper() and np.isfinite(x[k])}
        made.append(Outcome(Line(k, k, values), metrics))
    return made


def test_repeats_of_a_point_are_told_by_mean_quantiles_and_extremes() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(5.0, 2.0, 120)
    x[7] = np.nan
    runs = outcomes(a=np.repeat([1.0, 2.0, 3.0], 40), M=x)
    job = SimpleNamespace(config=SimpleNamespace(study=SimpleNamespace(repeats=40), vary={"a": None}))
    found = points(job, list(reversed(runs)), ["M"])  # type: ignore[arg-type]
    assert [p.values for p in found] == [{"a": 1.0}, {"a": 2.0}, {"a": 3.0}] and [p.runs for p in found] == [40] * 3
    head, rows = table(found, ["M"])
    assert head == ("a", "runs", "M: mean", "5 … 95 %", "least … most")
    for k, (point, row) in enumerate(zip(found, rows, strict=True)):
        told = np.sort([v for v in x[40 * k : 40 * k + 40] if np.isfinite(v)])
        at = np.arange(len(told)) / (len(told) - 1)
        low, high = np.interp([0.05, 0.95], at, told)
        s = point.metrics["M"]
        assert (s.mean, s.low, s.high, s.least, s.most) == pytest.approx((told.mean(), low, high, told[0], told[-1]))
        assert row == (
            k + 1.0,
            "40",
            f"{told.mean():.4g}",
            f"{low:.4g} … {high:.4g}",
            f"{told[0]:.4g} … {told[-1]:.4g}",
        )


def test_the_map_has_each_run_once_in_its_fifth_over_the_two_strongest_columns() -> None:
    rng = np.random.default_rng(4)
    n = 200
    weak, strong, middle = rng.random((3, n))
    z = 5.0 * strong - 2.0 * middle + 0.01 * weak
    runs = outcomes(weak=weak, strong=strong, middle=middle, Z=z)
    (figure,) = _maps(runs, ["Z"])
    (panel,) = figure.panels
    assert figure.x == "strong" and panel.title == "middle over strong, coloured by Z"
    assert abs(rank_correlation(strong, z) or 0.0) > abs(rank_correlation(middle, z) or 0.0)
    assert [line.role for line in panel.lines] == list(FIFTHS)
    order, seen = np.sort(z), 0
    value = {(a, b): c for a, b, c in zip(strong, middle, z, strict=True)}
    for k, line in enumerate(panel.lines):
        own = sorted(value[pair] for pair in zip(line.x, line.y, strict=True))
        assert len(own) == n // 5 and own == order[k * n // 5 : (k + 1) * n // 5].tolist()
        ends = np.quantile(z, [k / 5, (k + 1) / 5])
        assert line.label == f"Z {ends[0]:.3g} .. {ends[1]:.3g}"
        seen += len(own)
    assert seen == n


def test_dots_are_sorted_along_x_without_those_that_are_no_numbers() -> None:
    x, y = np.array([3.0, 1.0, np.nan, 2.0, 5.0]), np.array([30.0, 10.0, 20.0, np.nan, 50.0])
    line = _dots("z", x, y, "blue")
    assert (list(line.x), list(line.y)) == ([1.0, 3.0, 5.0], [10.0, 30.0, 50.0])


def test_signals_are_drawn_around_what_all_metrics_look_at() -> None:
    """Half of the stretch on either side; all of the run as soon as one metric looks at all of it."""
    t = np.arange(0.0, 20.0, 0.25)

    def job(*windows: tuple[float, float | None]) -> Any:
        own = {str(k): SimpleNamespace(signal="w", from_s=a, until_s=b) for k, (a, b) in enumerate(windows)}
        own["formula"] = SimpleNamespace(signal=None, from_s=0.0, until_s=None)
        return SimpleNamespace(config=SimpleNamespace(metrics=own))

    for windows in (((6.0, 8.0), (7.0, 10.0)), ((7.0, 10.0), (6.0, 8.0))):
        np.testing.assert_array_equal(_window(job(*windows), t), (t >= 4.0) & (t <= 12.0))
    assert _window(job((6.0, 8.0), (7.0, None)), t).all() and _window(job(), t).all()
