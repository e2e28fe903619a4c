"""What an animation holds of a run whose columns are written by hand, against Willis' equation and the columns."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from core_examples import PACK
from told_report import recorded, report

from torqueloop.core.analyse.shaft_motion import Motion
from torqueloop.core.components import Fixed, FreeWheel, IdealPlanetary, Inertia, LaminarBrake, LaminarClutch
from torqueloop.core.describe.driveline import Display, Driveline
from torqueloop.core.describe.errors import RangeError
from torqueloop.hil.animate import animate as animation
from torqueloop.hil.animate.content import LOCKED, OPEN, SLIPPING, _colours, states
from torqueloop.hil.animate.stage import Stage, stage
from torqueloop.hil.record.signals import Signals
from torqueloop.hil.report.analysis import Band, Shift
from torqueloop.hil.runs.recorded_run import RecordedRun

DT_S = 2e-3
T = 10.0 + (np.arange(2001)) * DT_S
#: what the planets of a set roll on: sun, ring, carrier, teeth of the sun, of the ring
SETS = {"P1": ("in", "R1", "out", 35, 73)}


def box() -> Driveline:
    """One set; A makes it a block, B or F1 hold its ring."""
    d = Driveline("box")
    for shaft in ("R1", "in", "out"):
        d.add(shaft, Inertia(J=0.01))
    d.add("housing", Fixed())
    d.add("P1", IdealPlanetary(z_sun=35, z_ring=73))
    for member, shaft in (("sun", "in"), ("ring", "R1"), ("carrier", "out")):
        d.connect(f"P1.{member}", f"{shaft}.flange_a")
    d.add("A", LaminarClutch(**PACK))
    d.connect("A.flange_a", "in.flange_b")
    d.connect("A.flange_b", "R1.flange_b")
    d.add("B", LaminarBrake(**PACK))
    d.connect("B.flange_a", "R1.flange_a")
    d.add("F1", FreeWheel())
    d.connect("F1.flange_a", "housing.flange")
    d.connect("F1.flange_b", "R1.flange_b")
    d.set_gearbox("in", "out")
    return d


def speeds(t: np.ndarray) -> dict[str, np.ndarray]:
    """Of all shafts [rad/s], two of them given, the ring's by Willis' equation."""
    w = {"in": 80.0 + t, "out": 15.0 - 2.0 * t}
    return w | {"R1": (108 * w["out"] - 35 * w["in"]) / 73}


def columns() -> dict[str, tuple[str, np.ndarray]]:
    turning = {f"{name}.w": ("rad/s", speeds(T)[name]) for name in ("in", "out")}
    return {
        **turning,
        "engine.w": ("rad/s", 100.0 + T), "turbine.w": ("rad/s", 90.0 - T),
        "A.mode": ("1", np.where(T < 12.0, 0.0, -1.0)), "A.tau": ("Nm", np.where(T < 13.0, -50.0, 0.0)),
        "A.p": ("Pa", 1e5 * T), "B.mode": ("1", np.full(len(T), 2.0)), "B.tau": ("Nm", np.zeros(len(T))),
        "car.a": ("m/s2", np.sin(T)),
    }  # fmt: skip


def signals() -> Signals:
    made = recorded(columns(), DT_S)
    made.columns.records["tick"] += 4999  # type: ignore[attr-defined]
    return made


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RecordedRun:
    folder = tmp_path_factory.mktemp("animated")
    bands = [Band(9.0, 9.5, "N"), Band(9.5, 11.25, "1"), Band(11.5, 13.9, "2")]
    shifts = [Shift("N", "1", 9.5, 9.6), Shift("1", "2", 11.25, 11.5), Shift("2", "3", 13.9, 14.5)]
    info = {"rig": "desk", "powertrain": "car", "clock": "virtual", "started": "2026-01-02T03:04:05+00:00"}
    return RecordedRun(folder, report(folder, info=info, signals=signals(), bands=bands, shifts=shifts, quality=[]))


def inside(file: Path) -> dict[str, Any]:
    text = file.read_text(encoding="utf-8")
    return dict(json.loads(text.partition('id="content">')[2].partition("</script>")[0]))


@pytest.fixture(scope="module")
def made() -> Stage:
    return stage(box())


@pytest.fixture(scope="module")
def drawn(run: RecordedRun, made: Stage) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(animation, "stage", lambda line: {made.driveline.name: made}[line.name])  # once for all tests
        return inside(animation.animate(run, run.path / "a.html", made.driveline))


def floats(text: str, kind: str = "<f4") -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), kind).astype(float)


def test_the_times_are_every_second_sample_of_500_a_second(drawn: dict[str, Any]) -> None:
    assert floats(drawn["t"], "<f8") == pytest.approx(T[::2])
    assert "of 3 shafts at 250 samples a second" in drawn["notes"][0]


@pytest.mark.parametrize(("samples", "span_s", "every"), [(501, 1.0, 2), (500, 0.998, 2), (500, 1.0, 1), (9, 0.008, 4)])
def test_no_more_than_250_samples_a_second_are_drawn(samples: int, span_s: float, every: int) -> None:
    assert animation._every(np.linspace(3.0, 3.0 + span_s, samples)) == every


def test_shafts_and_planets_turn_as_their_tooth_numbers_ask(drawn: dict[str, Any]) -> None:
    """Speeds of all shafts by Willis' equation; angles are their integral since the first sample, modulo a turn."""
    tracks = {track["name"]: track for track in drawn["tracks"]}
    t = T[::2]
    w = speeds(t)
    for name, (sun, _, carrier, z_sun, z_ring) in SETS.items():
        z_planet = (z_ring - z_sun) / 2
        w[f"{name}/planet"] = w[carrier] - (w[sun] - w[carrier]) * z_sun / z_planet
    assert set(tracks) == set(w)
    for name, speed in w.items():
        assert floats(tracks[name]["speed"]) == pytest.approx(speed, rel=1e-6, abs=1e-5), name
        # linear speeds: their trapezoids are exact
        angle = np.concatenate([[0.0], np.cumsum(0.5 * np.diff(t) * (speed[1:] + speed[:-1]))])
        off = np.angle(np.exp(1j * (floats(tracks[name]["angle"]) - angle)))
        assert np.abs(off).max() < 2e-6, name
    for wheels in drawn["sets"]:
        sun, ring, carrier, z_sun, z_ring = SETS[wheels["name"]]
        names = {w["name"]: (drawn["tracks"][w["track"]]["name"], w["teeth"], w["shaft"]) for w in wheels["wheels"]}
        assert names["sun"] == (sun, z_sun, sun) and names["ring"] == (ring, z_ring, ring)
        assert names["planet"][:2] == (f"{wheels['name']}/planet", (z_ring - z_sun) // 2)
        assert drawn["tracks"][wheels["carrier"]["track"]]["name"] == carrier


def test_packs_are_between_their_shafts_and_shafts_have_their_colours(drawn: dict[str, Any]) -> None:
    names = [track["name"] for track in drawn["tracks"]]
    ends = {c["name"]: (c["kind"], {names[k] for k in (c["outer"], c["inner"]) if k >= 0}) for c in drawn["couplings"]}
    assert ends == {"A": ("clutch", {"in", "R1"}), "B": ("brake", {"R1"}), "F1": ("freewheel", {"R1"})}
    colours = {s["name"]: s["colour"] for s in drawn["shafts"]}
    assert len(set(colours.values())) == len(colours) and drawn["converter"] is None and drawn["body"] is None
    # the first colours of the palette are those of the input and of the output
    assert (colours["in"], colours["out"]) == ("#63aebf", "#4fa873")
    for wheels in drawn["sets"]:
        assert all(w["colour"] == colours[w["shaft"]] for w in wheels["wheels"] if w["shaft"] in colours)


def test_the_input_is_on_the_left_the_output_on_the_right_and_a_shaft_has_the_colour_that_is_asked_for(
    drawn: dict[str, Any], made: Stage
) -> None:
    ways = {s["name"]: [x for _, *ends in s["tubes"] for x in ends] for s in drawn["shafts"]}
    assert min(ways["in"]) == min(x for way in ways.values() for x in way) < min(ways["out"])
    assert max(ways["out"]) == max(x for way in ways.values() for x in way) > max(ways["in"])
    line = box()
    line.display = Display(colours={"R1": "#123456"})
    assert _colours(replace(made, driveline=line)) == {**_colours(made), "R1": "#123456"} != _colours(made)


def test_states_gears_shifts_and_title_are_those_of_the_run(drawn: dict[str, Any]) -> None:
    assert (drawn["title"], drawn["subtitle"]) == (
        "desk", "car · virtual clock · 2026-01-02 · 10.000 to 14.000 s")  # fmt: skip
    # only what reaches into the time that is shown
    assert drawn["gears"] == [[9.5, 11.25, "1"], [11.5, 13.9, "2"]]
    assert drawn["shifts"] == [["1→2", 11.25, 11.5]], "the others are not in it from begin to end"
    found = {s["name"]: (list(floats(s["t"], "<f8")), list(floats(s["state"], "i1"))) for s in drawn["states"]}
    # sliding backward with a negative torque slips, without torque it is open
    assert found == {"A": ([pytest.approx(x) for x in (10.0, 12.0, 13.0)], [LOCKED, SLIPPING, OPEN]),
                     "B": ([10.0], [OPEN])}  # fmt: skip
    grey = next(note for note in drawn["notes"] if note.startswith("State not recorded"))
    assert grey == "State not recorded (grey): F1."


def test_a_stretch_is_drawn_from_its_begin_to_its_end(run: RecordedRun, made: Stage) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(animation, "stage", lambda line: made)
        part = inside(animation.animate(run, run.path / "part.html", made.driveline, from_s=11.301, until_s=11.401))
    assert part["subtitle"].endswith(" · 11.302 to 11.400 s") and part["gears"] == part["shifts"] == []
    assert floats(part["t"], "<f8") == pytest.approx(T[(T > 11.301) & (T < 11.401)][::2])


def test_curves_are_the_recorded_columns_in_units_that_people_read(drawn: dict[str, Any]) -> None:
    c, rpm = columns(), 60.0 / (2.0 * math.pi)
    wanted = {
        "Speeds": ("1/min", {"engine": c["engine.w"][1] * rpm, "turbine": c["turbine.w"][1] * rpm,
                             "out": c["out.w"][1] * rpm}),
        "Torques of elements": ("Nm", {"A": c["A.tau"][1]}), "Pressures": ("bar", {"A": c["A.p"][1] / 1e5}),
        "Acceleration of the car": ("m/s²", {"car": c["car.a"][1]}),
    }  # fmt: skip
    assert [p["title"] for p in drawn["plots"]] == list(wanted)
    for plot in drawn["plots"]:
        unit, lines = wanted[plot["title"]]
        assert plot["unit"] == unit and floats(plot["t"], "<f8") == pytest.approx(T)
        assert {line["name"] for line in plot["lines"]} == set(lines)
        for line in plot["lines"]:
            assert floats(line["values"]) == pytest.approx(lines[line["name"]], rel=1e-6, abs=1e-5), line["name"]


def test_all_plots_together_have_no_more_numbers_than_the_page_holds(
    run: RecordedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The times of each plot count as well: 4 plots of 6 lines."""
    for most in (20_010, 20_009, 10_000, 999):
        monkeypatch.setattr(animation, "PLOT_VALUES", most)
        plots = animation._curves(animation._signals(run, None, None))
        numbers = sum(len(p.t) + sum(len(y) for _, y in p.lines) for p in plots)
        assert numbers <= most + 10 and numbers > 0.45 * most, "every first one of a group may be one too many"
        assert (most == 20_010) == (len(plots[0].t) == len(T))
    # of a run without the usual signals six speeds
    few = {f"s{k}.w": ("rad/s", np.full(9, k)) for k in range(8)}
    (speeds_,) = animation._curves(animation._Signals(recorded(few), np.arange(9.0), slice(0, 9)))
    assert [name for name, _ in speeds_.lines] == [f"s{k}" for k in range(6)] and speeds_.unit == "1/min"


@pytest.mark.parametrize(
    ("from_s", "until_s", "first", "last"),
    [(None, None, 0, 2000), (11.001, None, 501, 2000), (None, 11.001, 0, 500), (10.499, 12.501, 250, 1250),
     (-5.0, 99.0, 0, 2000)],
)  # fmt: skip
def test_a_stretch_has_the_samples_from_its_begin_to_its_end(
    run: RecordedRun, from_s: float | None, until_s: float | None, first: int, last: int
) -> None:
    found = animation._signals(run, from_s, until_s)
    assert found.t == pytest.approx(T[first : last + 1], abs=1e-9)
    assert found["engine.w"] == pytest.approx(100.0 + found.t, abs=1e-9)
    assert "engine.w" in found and len(found) == len(columns()) == len(list(found))
    with pytest.raises(KeyError):
        found["engine.q"]


def test_a_stretch_that_is_none_or_too_long_is_refused_with_what_there_is(run: RecordedRun) -> None:
    def refused(change: Callable[[], object]) -> RangeError:
        with pytest.raises(RangeError) as error:
            change()
        return error.value

    assert refused(lambda: animation._signals(run, 20.0, None)).allowed == "recorded is 10 .. 14 s"
    assert refused(lambda: animation._signals(run, 12.0, 11.0)).allowed == "> from = 12 s"
    hours = replace(run, report=replace(run.report, run=replace(run.report.run, signals=recorded(
        {"engine.w": ("rad/s", np.zeros(4001))}, 0.5))))  # fmt: skip
    long = refused(lambda: animation._signals(hours, 100.0, 1950.0))
    assert long.value == pytest.approx(1850.0) and "at most 1800 s" in str(long.allowed)
    assert len(animation._signals(hours, 100.0, 1899.9).t) == 3600


@pytest.mark.parametrize(("turned_deg", "factor"), [(6.0, 1), (4.9, 2), (1.1, 5), (0.6, 10), (0.3, 20), (0.11, 50),
                                                    (0.001, 50)])  # fmt: skip
def test_the_turn_of_a_body_is_drawn_so_large_that_it_is_seen(turned_deg: float, factor: int) -> None:
    """So many times the largest turn since the first sample is five degrees or more, at most 50 times."""
    half = np.radians(np.array([30.0, 30.0 + turned_deg, 30.0])) / 2
    q = np.stack([np.cos(half), np.zeros(3), np.sin(half), np.zeros(3)], 1)
    for attitude in (q, -q, q * [[1], [-1], [1]]):  # a quaternion and its negative are one attitude
        assert animation._factor(attitude) == factor
    assert animation._factor(None) == 1.0 and animation._factor(q[:0]) == 1.0


def test_what_the_page_says_about_itself(made: Stage, run: RecordedRun) -> None:
    t = np.linspace(2.0, 4.0, 51)
    moved = Motion(t, dict.fromkeys("abc", t), dict.fromkeys("abc", t), ("in.w",), ("X.phi",))
    said = animation._notes(replace(made, left_out=("axle",)), moved, False, 1.0, animation._signals(run, None, None))
    assert said[0] == "Angles and speeds of 3 shafts at 25 samples a second, cubic between them."
    for words in ("no angle was recorded: in.w.", "from recorded angles: X.phi.", "Not drawn: axle."):
        assert any(words in note for note in said)
    # no state of any element was recorded
    none = animation._Signals(recorded({"x.w": ("rad/s", t)}), t, slice(0, 51))
    assert "State not recorded (grey): A, B, F1." in animation._notes(made, moved, False, 1.0, none)


def test_an_element_is_locked_slips_or_is_open_by_its_mode_and_torque() -> None:
    mode = np.array([0.0, 1.0, 1.0, -1.0, -1.0, 2.0, 0.0])
    tau = np.array([0.0, 5.0, 0.0, -5.0, 0.0, 5.0, 9.0])
    t, state = states(np.arange(7.0), mode, tau)
    assert list(t) == [0, 1, 2, 3, 4, 6] and list(state) == [LOCKED, SLIPPING, OPEN, SLIPPING, OPEN, LOCKED]
    t, state = states(np.arange(7.0), mode, None)
    assert list(t) == [0, 1, 5, 6] and list(state) == [LOCKED, SLIPPING, OPEN, LOCKED]
    assert [len(x) for x in states(np.zeros(0), np.zeros(0), None)] == [0, 0]
