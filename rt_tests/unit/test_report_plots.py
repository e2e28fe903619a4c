"""What the figures of a run draw, against its recorded columns and their definitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from told_report import TICK_S, recorded

from torqueloop.hil.record.run_data import ModeChange
from torqueloop.hil.record.signals import Signals
from torqueloop.hil.report import plots
from torqueloop.hil.report.analysis import Band, Shift
from torqueloop.hil.views.figure import Figure, Figures, Mark, Panel

RPM = 60.0 / (2.0 * np.pi)
N = 4000
T = (np.arange(N) + 1) * TICK_S  # 8 s
SHIFT = Shift("1", "2", 3.0, 3.5)


def columns() -> dict[str, tuple[str, np.ndarray]]:
    """C1 hands over to C2 at 3.25 s, its torque goes through zero at 3.1 s; F3 stays; each column is another one."""
    after = T >= 3.25
    made = {
        "engine.w": ("rad/s", 100.0 + 10.0 * T), "turbine.w": ("rad/s", 90.0 + 11.0 * T),
        "out.w": ("rad/s", 40.0 + 12.0 * T), "car.v": ("m/s", 5.0 + 0.1 * T * T), "car.a": ("m/s2", np.cos(T)),
        # the answer of 10 ms before
        "vehicle.t": ("s", np.maximum(T - 0.01, TICK_S)),
        "vehicle.speed": ("m/s", 5.0 + 0.1 * np.maximum(T - 0.01, TICK_S) ** 2 - 0.004 * T),
        "C1.mode": ("1", np.where(after, 2.0, 0.0)), "C1.tau": ("Nm", 300.0 * np.tanh(3.1 - T)),
        "C1.w_rel": ("rad/s", T * after), "C1.p": ("Pa", 8e5 - 1e5 * T), "C1.p_command": ("Pa", 6e5 * (T < 3.0)),
        "C2.mode": ("1", np.where(after, 0.0, -1.0)), "C2.tau": ("Nm", 50.0 + T), "C2.w_rel": ("rad/s", 9.0 - T),
        "C2.p": ("Pa", 1e5 * T), "input.C2.p": ("Pa", 9e5 * (T > 3.0)),
        "F3.mode": ("1", np.ones(N)), "F3.tau": ("Nm", 7.0 - T), "F3.w_rel": ("rad/s", 0.5 * T),
    }  # fmt: skip
    return made


@pytest.fixture
def signals() -> Signals:
    return recorded(columns())


Drawn = dict[tuple[str, str], tuple[np.ndarray, np.ndarray, str]]


def lines(figures: Figures, panels: Sequence[Panel]) -> Drawn:
    """(unit, label) -> (x, values as they are shown, style)."""
    return {(p.unit, line.label): (*figures.values(line), line.style) for p in panels for line in p.lines}


def is_drawn(drawn: Drawn, unit: str, label: str, values: np.ndarray, t: np.ndarray = T, style: str = "line") -> None:
    x, y, how = drawn.pop((unit, label))
    assert x == pytest.approx(t) and y == pytest.approx(values, rel=1e-9, abs=1e-9) and how == style, (unit, label)


def made(signals: Signals, bands: Sequence[Band] = ()) -> tuple[Figures, plots.RunPlots]:
    figures = Figures()
    return figures, plots.RunPlots(figures, signals, bands)


def of(figure: Figure | None) -> Figure:
    assert figure is not None
    return figure


def test_a_page_has_every_signal_in_its_own_unit_and_the_gears_with_their_times(signals: Signals) -> None:
    figures, _ = made(signals, [Band(0.5, 3.0, "1"), Band(3.5, 8.0, "2")])
    assert figures.gears == [(0.5, 3.0, "1"), (3.5, 8.0, "2")]
    (block,) = figures.blocks
    shown = dict(zip(block.names, zip(block.units, block.columns, strict=True), strict=True))
    unit, t = shown.pop("t")
    assert unit == "s" and t == pytest.approx(T) and block.steps[0] == TICK_S
    assert list(shown) == list(columns())
    for name, (unit, values) in columns().items():
        assert shown[name][0] == ("" if unit == "1" else unit) and (shown[name][1] == values).all(), name


def test_speeds_acceleration_and_speed_of_the_car_over_the_run(signals: Signals) -> None:
    figures, run = made(signals)
    drawn, c = lines(figures, of(run.drive()).panels), columns()
    is_drawn(drawn, "1/min", "engine", c["engine.w"][1] * RPM)
    is_drawn(drawn, "1/min", "turbine", c["turbine.w"][1] * RPM)
    is_drawn(drawn, "1/min", "gearbox output", c["out.w"][1] * RPM)
    is_drawn(drawn, "m/s²", "acceleration of the car", c["car.a"][1])
    is_drawn(drawn, "km/h", "speed of the car", c["car.v"][1] * 3.6)
    assert not drawn


def test_without_recorded_acceleration_that_of_the_speed_is_drawn_and_without_turbine_the_input_shaft() -> None:
    c = {name.replace("turbine.w", "in.w"): x for name, x in columns().items() if name != "car.a"}
    figures, run = made(recorded(c))
    drawn = lines(figures, of(run.drive()).panels)
    is_drawn(drawn, "1/min", "turbine", columns()["turbine.w"][1] * RPM)
    t, a, _ = drawn["m/s²", "acceleration of the car"]
    assert a[1:-1] == pytest.approx(0.2 * t[1:-1], rel=1e-6)
    assert made(recorded({"C1.mode": ("1", np.zeros(9))}))[1].drive() is None


@pytest.mark.parametrize("points", [30_000, 500], ids=["whole", "thinned"])
def test_a_shift_shows_every_sample_of_the_elements_that_hand_over(
    signals: Signals, points: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torqueloop.hil.views.figure.POINTS", points)
    figures, run = made(signals)
    monkeypatch.undo()
    figure = of(run.shift(SHIFT))
    assert (figure.begin, figure.end) == pytest.approx((2.45, 3.95)) and figure.name == "zoom"
    # a thinned page has a block of its own for the shift: every sample of it
    inside = (T >= 2.45 - 1e-9) & (T <= 3.95 + 1e-9) if points == 500 else np.ones(N, bool)
    drawn, c = lines(figures, figure.panels), columns()
    for name in ("C1", "C2"):
        is_drawn(drawn, "N·m", name, c[f"{name}.tau"][1][inside], T[inside])
        is_drawn(drawn, "1/min", name, c[f"{name}.w_rel"][1][inside] * RPM, T[inside])
        is_drawn(drawn, "bar", name, c[f"{name}.p"][1][inside] / 1e5, T[inside])
    is_drawn(drawn, "bar", "C1 commanded", c["C1.p_command"][1][inside] / 1e5, T[inside], "dash")
    is_drawn(drawn, "bar", "C2 commanded", c["input.C2.p"][1][inside] / 1e5, T[inside], "dash")
    is_drawn(drawn, "m/s²", "acceleration of the car", c["car.a"][1][inside], T[inside])
    assert not drawn, "F3 does not change"
    (rows,) = [p.rows for p in figure.panels if p.rows]
    near = [(name, [(pytest.approx(begin, abs=2 * TICK_S), pytest.approx(end, abs=2 * TICK_S), text)
             for begin, end, text in row]) for name, row in (
        ("C1", [(2.45, 3.25, "stuck"), (3.25, 3.95, "free")]),
        ("C2", [(2.45, 3.25, "sliding backward"), (3.25, 3.95, "stuck")]))]  # fmt: skip
    assert [(name, [(s.begin, s.end, s.text) for s in row]) for name, row in rows] == near
    # behind zero by a twentieth of the range, which is 600 Nm tanh(0.65 .. -0.85)
    span = 300.0 * (np.tanh(0.65) + np.tanh(0.85))
    at = 3.1 + np.arctanh(0.05 * span / 300.0)
    assert [(m.text, m.x) for m in figure.marks] == [("C1 changes sign", pytest.approx(at, abs=2 * TICK_S))]
    # figures that are made later show the whole run again
    later = lines(figures, of(run.torques()).panels)
    assert len(later["N·m", "C1"][0]) == len(figures.blocks[0].columns[0])


@pytest.mark.parametrize(
    ("shift", "elements"),
    [
        (SHIFT, ["C1", "C2"]),
        # the mode 0.45 s before and behind it
        (Shift("1", "2", 3.65, 3.8), ["C1", "C2"]), (Shift("1", "2", 3.75, 3.8), []),
        (Shift("1", "2", 2.7, 2.85), ["C1", "C2"]), (Shift("1", "2", 2.7, 2.75), []),
        # a shift at the begin and at the end of the recording: its first and last sample
        (Shift("1", "2", 0.1, 3.0), ["C1", "C2"]), (Shift("1", "2", 3.2, 7.9), ["C1", "C2"]),
        (Shift("1", "2", 6.0, 7.9), []),
    ],
)  # fmt: skip
def test_elements_that_hand_over_have_another_mode_behind_the_shift(
    signals: Signals, shift: Shift, elements: list[str]
) -> None:
    assert plots.zoom_elements(signals, shift) == elements
    figure = made(signals)[1].shift(shift, "shift3")
    assert (figure is None) == (not elements)
    if figure is not None:  # not before the begin of the run
        assert (figure.begin, figure.end) == pytest.approx((max(shift.begin_s - 0.55, 0.0), shift.end_s + 0.45))


def test_pressures_of_all_elements_stand_on_one_scale_in_bar(signals: Signals) -> None:
    figures, run = made(signals)
    figure, c = of(run.pressures()), columns()
    drawn = lines(figures, figure.panels)
    is_drawn(drawn, "bar", "C1 actual", c["C1.p"][1] / 1e5)
    is_drawn(drawn, "bar", "C2 actual", c["C2.p"][1] / 1e5)
    is_drawn(drawn, "bar", "C1 commanded", c["C1.p_command"][1] / 1e5)
    is_drawn(drawn, "bar", "C2 commanded", c["input.C2.p"][1] / 1e5)
    assert not drawn
    # 9 bar at the most, which are asked for; room for no pressure and for the highest one, and little more
    ((low, high),) = {(p.low, p.high) for p in figure.panels}
    assert low is not None and high is not None and -0.9 < low < 0.0 and 9.0 < high < 9.9
    # of pressures below 1 bar the scale ends near 1 bar
    figure = of(made(recorded({"C1.p": ("Pa", np.full(9, 2e4))}))[1].pressures())
    assert [p.high for p in figure.panels] == [pytest.approx(1.0, rel=0.1)]
    assert made(recorded({"C1.p": ("1", np.ones(9))}))[1].pressures() is None, "no pressure"


def test_torques_of_all_elements(signals: Signals) -> None:
    figures, run = made(signals)
    drawn = lines(figures, of(run.torques()).panels)
    for name in ("C1", "C2", "F3"):
        is_drawn(drawn, "N·m", name, columns()[f"{name}.tau"][1])
    assert not drawn


def test_the_difference_to_the_vehicle_model_is_taken_at_the_time_of_its_answer(signals: Signals) -> None:
    """Rig minus vehicle model: the rig's speed when the answer was given, less the answer: 4 mm/s a second."""
    figures, run = made(signals)
    drawn = lines(figures, of(run.link()).panels)
    _, residual, _ = drawn["mm/s", "rig - vehicle model"]
    assert residual == pytest.approx(4.0 * T, abs=1e-3)
    for name in ("car.v", "vehicle.speed", "vehicle.t"):
        assert made(recorded({n: x for n, x in columns().items() if n != name}))[1].link() is None


def test_signals_around_a_moment_are_drawn_in_units_that_people_read(signals: Signals) -> None:
    figures, near = Figures(), signals.between(3.0, 3.2)
    panels = [("", ["engine.w", "C1.mode"]), ("bar", ["C1.p", "C2.p"]), ("", ["car.v", "C1.tau"])]
    figure = of(plots.around(figures, "here", panels, [Mark(3.1, "here")], near, "title"))
    # every tick, up to the end of the last one
    assert (figure.begin, figure.end) == pytest.approx((near.t[0], near.t[-1] + TICK_S)) and near.n > 99
    assert [p.title for p in figure.panels] == ["title", "", ""] and [m.x for m in figure.marks] == [3.1]
    assert figures.blocks[0].steps[0] == TICK_S
    drawn, c, inside = lines(figures, figure.panels), columns(), np.isin(T, near.t)
    is_drawn(drawn, "", "engine.w [1/min]", c["engine.w"][1][inside] * RPM, near.t)
    is_drawn(drawn, "", "C1.mode", c["C1.mode"][1][inside], near.t)
    is_drawn(drawn, "bar", "C1.p", c["C1.p"][1][inside] / 1e5, near.t)
    is_drawn(drawn, "bar", "C2.p", c["C2.p"][1][inside] / 1e5, near.t)
    is_drawn(drawn, "", "car.v [km/h]", c["car.v"][1][inside] * 3.6, near.t)
    is_drawn(drawn, "", "C1.tau [Nm]", c["C1.tau"][1][inside], near.t)
    assert not drawn and plots.around(figures, "none", [], [], near) is None


def spans(figure: Figure | None) -> dict[str, list[tuple[Any, ...]]]:
    return {name: [(s.begin, s.end, s.text) for s in row] for p in of(figure).panels for name, row in p.rows}


def test_states_last_from_one_change_to_the_next(signals: Signals) -> None:
    def near(x: float) -> Any:
        return pytest.approx(x, abs=1e-9)

    recorded_ = spans(plots.states([], signals))
    assert recorded_ == {
        "C1": [(near(TICK_S), near(3.25), "stuck"), (near(3.25), near(8.0), "free")],
        "C2": [(near(TICK_S), near(3.25), "sliding backward"), (near(3.25), near(8.0), "stuck")],
        "F3": [(near(TICK_S), near(8.0), "sliding forward")],
    }
    # without signals from the log of changes, up to the last of them
    log = [ModeChange(0, 0.0, "C1", 0), ModeChange(500, 1.0, "C2", 2), ModeChange(1000, 2.0, "C1", 1),
           ModeChange(2000, 4.0, "C2", -1)]  # fmt: skip
    assert spans(plots.states(log, None)) == {
        "C1": [(0.0, 2.0, "stuck"), (2.0, 4.0, "sliding forward")],
        "C2": [(1.0, 4.0, "free"), (4.0, 4.0, "sliding backward")],
    }
    assert plots.states([], None) is None
    # a colour says the same in the legend and in the band
    figure = of(plots.states([], signals))
    for _, row in figure.panels[0].rows:
        assert all(figure.colours[s.role].startswith(s.text) for s in row)
    assert set(figure.colours.values()) == {
        "stuck (locked)", "sliding forward", "sliding backward", "free / overrunning"}  # fmt: skip


def test_energy_that_was_taken_out_or_given_back_stands_on_the_other_side() -> None:
    """[kJ] 1000 + 30 + 2 come in of the supplies, 5 of what was stored, 1 of a loss that gave back: 1038."""
    supplied = {"engine": 1000e3, "starter": 30e3, "driver": 2e3, "brake": -50e3, "nothing": 1.0}
    lost = {"road": 700e3, "C4": 40e3, "C5": 12e3, "odd": -1e3}
    stored = {"kinetic": 230e3, "lean": -5e3, "spring": 6e3}
    figure, small = plots.energy(supplied, lost, stored)
    rows = spans(figure)
    came = {"engine": 1000, "starter": 30, "lean": 5, "driver": 2, "odd": 1, "nothing": 0.001}
    went = {"road": 700, "kinetic": 230, "brake": 50, "C4": 40, "C5": 12, "spring": 6}
    for name, terms in (("came from", came), ("went to", went)):
        ends = np.cumsum(list(terms.values()))
        assert [text for *_, text in rows[name]] == [f"{n} {x:.0f} kJ" for n, x in terms.items()]
        assert [end for _, end, _ in rows[name]] == pytest.approx(ends)
        assert [begin for begin, *_ in rows[name]] == pytest.approx([0.0, *ends[:-1]])
    # in words: more than 2e-5 and up to a twentieth of all, the largest first, in kJ; 50 of 1038 is below it
    assert small == [
        "came from, small ones [kJ]: starter 30.0, lean 5.0, driver 2.0, odd 1.0",
        "went to, small ones [kJ]: brake 50.0, C4 40.0, C5 12.0, spring 6.0",
    ]
    # nothing but what a spring gives to a fly wheel is drawn, nothing at all is not
    assert list(spans(plots.energy({}, {}, {"spring": -5.0, "wheel": 5.0})[0])) == ["came from", "went to"]
    assert spans(plots.energy({}, {"heat": 5e3}, {})[0])["went to"] == [(0.0, 5.0, "heat 5 kJ")]
    assert plots.energy({"engine": 0.0}, {}, {}) == (None, [])
