"""Two runs side by side, against numbers computed from the same samples by another way."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from torqueloop.hil.record.signals import Signals, signal_dtype
from torqueloop.hil.runs.compare import _metrics, _signals
from torqueloop.hil.runs.compare_page import Compared, as_json, drawn, print_comparison, write_page
from torqueloop.hil.runs.differences import Differences, MetricDifference, SignalDifference


def run(name: str, tick_s: float, first: int, columns: dict[str, Any], units: dict[str, str]) -> Any:
    """What is compared of a run: these signals from a tick on."""
    n = len(next(iter(columns.values())))
    records = np.zeros(n, signal_dtype(len(columns)))
    records["tick"] = first + np.arange(n)
    records["out"] = np.array(list(columns.values())).T
    signals = Signals.of(list(columns), units, tick_s, records)
    return SimpleNamespace(path=name, report=SimpleNamespace(run=SimpleNamespace(signals=signals)))


UNITS = {"w": "rad/s", "v": "rad/s", "p": "Pa", "still": "Pa", "stuck": "rad/s"}


def waves(t: Any, error: float) -> dict[str, Any]:
    return {"w": 3.0 + 2.0 * t + error * (t > 0.5), "v": 5.0 * t, "p": 1e5 + 0.0 * t, "still": 7.0 + error + 0.0 * t,
            "stuck": 1e-12 * np.sign(t - 0.6)}  # fmt: skip


def test_a_difference_is_the_largest_one_over_the_range_of_both_runs() -> None:
    """A has ticks of 1 ms from 0.1 s to 0.8 s, B of 5 ms from 0.2 s to 1 s: B is interpolated at the samples of A."""
    ta, tb = np.arange(100, 801) * 1e-3, np.arange(40, 201) * 5e-3
    a, b = run("a", 1e-3, 100, waves(ta, 0.0), UNITS), run("b", 5e-3, 40, waves(tb, 0.25), UNITS)
    found, remarks = _signals(a, b, 1e-3)
    found_by = {s.name: s for s in found}
    first, second = (r.report.run.signals.t for r in (a, b))
    inside = (first > second[0] - 1e-6) & (first < second[-1] + 1e-6)
    for name in UNITS:
        x = a.report.run.signals[name][inside]
        y = np.interp(first[inside], second, b.report.run.signals[name])
        apart = np.abs(x - y)
        of_unit = max(np.abs(r.report.run.signals[n]).max() for r in (a, b) for n in UNITS if UNITS[n] == UNITS[name])
        both = np.concatenate([x, y])
        scale = max(np.ptp(both) or np.abs(both).max(), 1e-9 * of_unit)
        s = found_by[name]
        assert (s.unit, s.largest, s.rms) == (
            UNITS[name],
            pytest.approx(apart.max()),
            pytest.approx(np.sqrt(np.mean(apart**2))),
        )
        assert s.at_s == pytest.approx(first[inside][apart.argmax()]), name
        assert s.relative == pytest.approx(apart.max() / scale, rel=1e-9, abs=1e-15), name
        assert s.within == (s.relative <= 1e-3)
    ranked = [(s.within, -s.relative) for s in found]
    assert ranked == sorted(ranked) and not found[0].within and found_by["stuck"].within
    assert remarks == [f"A ends at {first[-1]:g} s, B at {second[-1]:g} s: compared where both are"]


def test_what_only_one_run_has_and_runs_apart_are_said() -> None:
    t = np.arange(100) * 1e-3
    many = {f"x{k}": t for k in range(11)}
    a, b = run("a", 1e-3, 0, {"w": t, **many}, {}), run("b", 1e-3, 0, {"w": t, "y": t}, {})
    found, remarks = _signals(a, b, 1e-3)
    assert [s.name for s in found] == ["w"] and found[0].largest == 0.0 and found[0].within
    assert remarks == ["recorded in A only: x0, x1, x2, x3, x4, x5, x6, x7 and 3 more", "recorded in B only: y"]
    found, remarks = _signals(a, run("late", 1e-3, 500, {"w": t}, {}), 1e-3)
    assert not found and remarks[-1] == "the runs have no time in common"


def test_a_sample_that_is_no_number_in_one_run_only_is_infinitely_apart() -> None:
    x = np.array([1.0, np.nan, np.inf, 3.0])
    for y, apart in (
        (x, 0.0),
        (np.array([1.0, 2.0, np.inf, 3.0]), np.inf),
        (np.array([1.0, np.nan, 5.0, 3.0]), np.inf),
    ):
        with np.errstate(invalid="raise"):
            ((s,), _) = _signals(run("a", 1e-3, 0, {"w": x}, {}), run("b", 1e-3, 0, {"w": y}, {}), 1e-3)
        assert s.largest == apart and s.within == (apart == 0.0)


class Shown:
    """A run as the page of a comparison needs it."""

    def __init__(self, name: str, t: Any, columns: dict[str, Any]) -> None:
        self.path, self.t, self.columns = name, t, columns
        self.info = SimpleNamespace(tick_s=1e-3, rig="desk")
        self.units = UNITS

    def __getitem__(self, name: str) -> Any:
        return self.columns[name]


def differences(**given: Any) -> Differences:
    ta, tb = np.arange(1, 801) * 1e-3, np.arange(1, 201) * 5e-3
    a, b = Shown("first", ta, waves(ta, 0.0)), Shown("second", tb, waves(tb, 0.25))
    b.columns["p"] = 1e5 + 3e4 * tb
    signals = [
        SignalDifference(name, unit, 1.5 + k, at_s=0.25 + k, rms=0.125 + k, relative=10.0 ** (k - 3), within=k < 2)
        for k, (name, unit) in enumerate(UNITS.items())
    ]  # fmt: skip
    metrics = [MetricDifference("shifts", 5.0, 2.0, False, False), MetricDifference("run_s", 1.0, 9.0, True, True),
               MetricDifference("same", 4.0, 4.0, False, True)]  # fmt: skip
    return Differences(a, b, 1e-3, signals, metrics, ["a remark"], **given)  # type: ignore[arg-type]


def test_the_console_shows_what_differs_in_its_columns() -> None:
    console = Console(width=200, record=True, color_system=None, file=open("/dev/null", "w"))
    print_comparison(differences(), console, most=2)
    lines = [re.split(r"\s{2,}", line.strip()) for line in console.export_text().splitlines()]
    assert lines[0] == ["DIFFERENT", "3 of 5 signals and 1 metrics differ by more than 0.001"]
    assert [["A first"], ["B second"], ["a remark"]] == lines[1:4]
    assert ["signal", "unit", "largest", "at s", "rms", "of its range"] in lines
    assert ["p", "Pa", "3.5", "2.25", "2.125", "1.00e-01"] in lines
    assert ["still", "Pa", "4.5", "3.25", "3.125", "1.00e+00"] in lines and ["... and 1 more"] in lines
    assert ["shifts", "5.0", "2.0", "-3.0"] in lines and not [
        line for line in lines if line[0] in ("run_s", "same", "w")
    ]


def test_drawn_are_those_that_differ_and_those_a_drive_is_looked_at_by() -> None:
    made = differences()
    assert drawn(made, None) == ["p", "still", "stuck"] and drawn(made, ["v", "w"]) == ["v", "w"]
    many = [SignalDifference(f"x{k}", "", 1.0, 0.0, 1.0, 1.0, False) for k in range(9)]
    usual = [SignalDifference(n, "", 0.0, 0.0, 0.0, 0.0, True) for n in ("out.w", "engine.w", "car.v", "turbine.w")]
    found = drawn(replace(made, signals=[*many, *usual]), None)
    assert found == ["x0", "x1", "x2", "x3", "x4", "engine.w", "turbine.w", "out.w"]


def test_the_figure_has_both_runs_and_b_less_a_where_both_are() -> None:
    made = differences()
    compared = Compared(made)
    (name,) = compared.draw(["p"])
    above, below = compared.figures.figures[name].panels
    (ta, a), (tb, b), (t, off) = (compared.figures.values(line) for line in (*above.lines, *below.lines))
    assert [line.label for line in (*above.lines, *below.lines)] == ["A", "B", "B − A"]
    # shown in bar
    np.testing.assert_allclose(a, made.a["p"] * 1e-5)
    np.testing.assert_allclose(b, made.b["p"] * 1e-5)
    both = (ta >= tb[0] - 1e-9) & (ta <= tb[-1] + 1e-9)
    assert np.isnan(off[~both]).all() and (~both).sum() == 4 and np.array_equal(t, ta)
    np.testing.assert_allclose(off[both], np.interp(ta[both], tb, b) - a[both], atol=1e-12)
    assert above.unit == below.unit == "bar" and above.title == "p"
    # the other way round: B begins at 0.001 s and ends at 0.8 s, at the 160th of the ticks of A
    compared = Compared(Differences(made.b, made.a, 1e-3, made.signals, [], []))
    (name,) = compared.draw(["p"])
    _, off = compared.figures.values(compared.figures.figures[name].panels[1].lines[0])
    assert np.isfinite(off).sum() == 160 and np.isnan(off[160:]).all()


@pytest.mark.parametrize(("tick_s", "n", "end"), [
    (5e-3, 160, "0.8"), (1.7e-3, 471, ""), (1.5e-3, 534, ""), (1.7e-3, 470, "0.799"), (0.8e-3, 1002, "0.8016"),
    (0.8e-3, 1001, ""),
])  # fmt: skip
def test_runs_end_together_within_half_of_the_shorter_tick(tick_s: float, n: int, end: str) -> None:
    """A ends at 0.801 s with ticks of 0.89 ms; B at 0.8, 0.8007, 0.801, 0.799, 0.8016 and 0.8008 s."""
    a, b = (run(name, h, 0, {"w": np.arange(float(m))}, {}) for name, h, m in (("a", 0.89e-3, 900), ("b", tick_s, n)))
    _, remarks = _signals(a, b, 1e-3)
    assert remarks == ([f"A ends at 0.801 s, B at {end} s: compared where both are"] if end else [])


@pytest.mark.parametrize(("x", "y", "alike"), [
    (5.0, 5.004, True), (5.0, 5.006, False), (-5.0050025, -5.0, True), (-5.0, -5.006, False), (0.0, 5e-10, True),
    (0.0, 2e-9, False), (1e-12, -3e-12, True), (-1.0, 1.0, False), (np.nan, np.nan, True), (np.nan, 1.0, False),
    (None, 1.0, False), ("a", "a", True), ("a", "b", False), ("1", 1, False), (np.inf, np.inf, True), (True, 1, True),
])  # fmt: skip
def test_metrics_are_alike_within_the_tolerance_of_the_larger_amount(x: Any, y: Any, alike: bool) -> None:
    a, b = (SimpleNamespace(metrics={"shift_s_max": v, "compute_p99_us": v, "none": None}) for v in (x, y))
    machine, simulated = _metrics(a, b, 1e-3)  # type: ignore[arg-type]
    assert (machine.name, machine.machine, machine.within) == ("compute_p99_us", True, True)
    assert (simulated.name, simulated.machine, simulated.within) == ("shift_s_max", False, alike)
    numbers = not any(v is None or isinstance(v, str) for v in (x, y))
    assert simulated.difference == (pytest.approx(y - x, nan_ok=True) if numbers else None)


def rows_of(page: str) -> list[list[str]]:
    """The cells of all rows of all tables of a page."""
    rows = re.findall(r"<tr>(.*?)</tr>", page, re.S)
    return [[html.unescape(re.sub("<.*?>", "", c)).strip() for c in re.findall(r"<td[^>]*>(.*?)</td>", row, re.S)]
            for row in rows]  # fmt: skip


def test_the_page_and_the_data_have_what_differs_in_its_columns(tmp_path: Path) -> None:
    made = differences()
    equal = SignalDifference("equal", "m", 0.0, 0.0, 0.0, 0.0, True)
    made = replace(made, signals=[*made.signals, equal],
                   metrics=[*made.metrics, MetricDifference("lost", 1.0, "two", False, False)])  # fmt: skip
    page = write_page(made, tmp_path / "page.html", ["p"]).read_text()
    rows = rows_of(page)
    assert ["w", "rad/s", "1.5", "0.25", "0.125", "1.00e-03", "–"] in rows
    assert ["stuck", "rad/s", "5.5", "4.25", "4.125", "1.00e+01", "differs"] in rows
    found = [row for row in rows if row and row[0] in ("shifts", "lost", "run_s", "same", "equal")]
    assert found == [["lost", "1", "two", "–", "differs"], ["shifts", "5", "2", "-3", "differs"],
                     ["same", "4", "4", "0", ""], ["run_s", "1", "9", "8", "machine"]]  # fmt: skip
    text = re.sub("<.*?>", "", page)
    assert (
        "1 of 6 signals are equal to the bit." in text and "A: first · B: second" in text and "desk: two runs" in text
    )
    told = as_json(made)
    assert (told["a"], told["b"], told["equal"], told["tolerance"]) == ("first", "second", False, 1e-3)
    assert told["remarks"] == ["a remark"] and told["different"] == ["p", "still", "stuck", "shifts", "lost"]
    assert told["signals"][0]["largest"] == 1.5 and told["metrics"][1]["b"] == 9.0


def test_the_console_says_how_many_metrics_it_does_not_show() -> None:
    many = [MetricDifference(f"m{k}", 1.0, 2.0, False, False) for k in range(9)]
    console = Console(width=200, record=True, color_system=None, file=open("/dev/null", "w"))
    print_comparison(replace(differences(), metrics=many), console, most=4)
    text = console.export_text()
    assert "... and 5 more" in text and "m3" in text and "m4" not in text
