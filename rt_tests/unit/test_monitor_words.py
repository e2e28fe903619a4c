"""What a failed monitor says, which failure follows from which, and the strip of gears: written out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from test_drive_monitors import drive

from torqueloop.cython_kernels.tick.monitors import UNKNOWN
from torqueloop.hil.common.levers import LEVERS
from torqueloop.hil.monitors.catalogue import BY_NAME, MONITORS, ONLINE
from torqueloop.hil.monitors.reading import Finding, Reading
from torqueloop.hil.record.signals import Signals, signal_dtype
from torqueloop.hil.report import monitors
from torqueloop.hil.report.analysis import Band
from torqueloop.hil.report.monitors import GearStrip, MonitorVerdict, summary
from torqueloop.hil.results.monitors import ElementFacts, GearboxFacts, GearFacts, MonitorSpec, ReportedSpeed

TICK_S = 0.01
#: bit by bit A, B, C: A and C are gear 2, B and C gear 4, A and B none, all three too many
BOX = GearboxFacts(
    "box", [ElementFacts(name, 10.0) for name in "ABC"],
    [GearFacts("2_engine_braking", 2, 2.0, ["A", "C"]), GearFacts("4", 4, 1.0, ["B", "C"])],
    closed_as=[-1, -1, -1, -3, -1, 0, 1, -2], engine_max_radps=6000 * np.pi / 30,
)  # fmt: skip
SPEC = MonitorSpec(
    BOX, {"v": "car.v", "asked": "BUS.gear_target", "reported": "BUS.gear_actual"},
    reported=[(14.0, 4.0), (12.0, 2.0)], asked=[(1.0, 4.0), (2.0, -1.0)],
    pairs=[ReportedSpeed("BUS.n_in", "turbine.w"), ReportedSpeed("BUS.n_out", "out.w")],
)  # fmt: skip
#: no two numbers of it are equal
FOUND = Finding(True, 900, 77.0, 399, 250, 6.5, 420, 0b101, 2, 3, 4.0, 5.0, float(LEVERS.index("D")))
#: from tick 100 on; only tick 420 has these values
AT_WORST = {"car.v": -1.0, "A.w_rel": 0.5, "C.w_rel": -12.3, "C.p": 3.44e5, "BUS.n_in": 200.0, "turbine.w": 100.0,
            "n_out": 104.0, "out.w": 100.0}  # fmt: skip

CLOSED = "A+C are closed"
SENTENCES = {
    "direction": f"In D the car drove backwards from 4.00 s on: {CLOSED}, which is 2.",
    "neutral": f"In D the gearbox drives from 4.00 s on: {CLOSED}, which is 2.",
    "interrupted": "The shift 3→2 is given up for 4 at 4.00 s, before 2 is engaged, with lever and pedals at rest.",
    "tie_up": "A+C work against each other at 4.00 s (the shift 3→4): the car decelerates by 6.5 m/s² more than the "
              "engine's torque explains.",
    "no_gear": "In D A+C are closed from 4.00 s on, which is no gear of box.",
    "flare": "The shift 3→4 flares at 4.00 s: the turbine runs 6.5 rad/s above the speeds that both gears give.",
    "hunting": "The gears hunt: at 4.00 s gear 2 is engaged once more, for the third time within seconds, with lever "
               "and pedals at rest.",
    "shift_time": "No gear is engaged from 2.50 s on (the shift 3→4), for 6.5 s under power.",
    "other_gear": "From 4.00 s on, the control unit reports 5, but 2 is engaged (A+C are closed).",
    "skipped": "3 to 2 at 4.00 s leaves out a gear that was requested.",
    "slip": "Gear 2 slips from 4.00 s on: A+C are closed and do not hold (6.5 rad/s; C slips by 12 rad/s at 3.4 bar).",
    "no_drive": f"In D the car is not driven from 1.00 s on although the pedal requests it: {CLOSED}, which is 2.",
    "engine_speed": "The engine is turned 6.5 rad/s beyond its limit of 6000 1/min at 4.00 s, in gear 2.",
    "stall": "The engine is stalled at 4.00 s, in gear 2.",
    "lock_up": "The converter was never locked, not even in gear 2 with the pedal at rest from 0.00 s on.",
    "park": "The control unit closes the park lock at 4.00 s while the car rolls at 6.5 m/s.",
    "unanswered": "A torque request from 3.50 s on is never acknowledged.",
    "late_answer": "The acknowledge comes later than the control unit waits: at 4.00 s it ends a torque request before "
                   "the acknowledge, for the second time in a row.",
    "reported_speed": "From 4.00 s on, the rig sends the control unit a speed that differs from the true one by 6.5 "
                  "rad/s: BUS.n_in 1910 1/min, turbine.w 955 1/min.",
}  # fmt: skip


def recorded(**changed: float) -> Signals:
    values = AT_WORST | changed
    records = np.zeros(400, signal_dtype(len(values)))
    records["tick"] = np.arange(100, 500)
    records["out"][:] = np.array([1.0, *np.zeros(len(values) - 1)])
    records["out"][320] = list(values.values())
    return Signals.of(list(values), dict.fromkeys(values, "1"), TICK_S, records)


def sentence(name: str, spec: MonitorSpec = SPEC, signals: Signals | None = None, **found: Any) -> str:
    return monitors._Words(spec, signals or recorded()).sentence(BY_NAME[name], replace(FOUND, **found))


@pytest.mark.parametrize("monitor", [m.name for m in ONLINE])
def test_a_failure_is_told_in_a_sentence(monitor: str) -> None:
    assert sentence(monitor) == SENTENCES[monitor]


def test_speeds_backward_are_compared_by_their_amounts() -> None:
    """4 rad/s of -100 are within the 6 that are allowed there."""
    backward = recorded(**{"out.w": -100.0, "n_out": -104.0})
    assert sentence("reported_speed", signals=backward) == SENTENCES["reported_speed"]


def test_words_of_levers_gears_and_elements() -> None:
    R, M = float(LEVERS.index("R")), float(LEVERS.index("M"))
    ahead = recorded(**{"car.v": 1.0})
    for lever, signals, words in (
        (R, ahead, "In R the car drove forwards"),
        (R, None, "In R the gearbox drives forwards"),
        (M, ahead, "In M the gearbox drives backwards"),
        (99.0, None, "In D the car drove"),
    ):
        assert sentence("direction", signals=signals, lever=lever).startswith(words)
    drives = {
        0b001: "A is closed, which drives nothing; B+C are open, which 4 needs.",
        0b000: "no element is closed; B+C are open, which 4 needs.",
        0b100: "C is closed, which drives nothing; B is open, which 4 needs.",
        0b011: "A+B are closed, which is no gear.", 0b110: "B+C are closed, which is 4.",
    }  # fmt: skip
    for closed, words in drives.items():
        assert sentence("no_drive", closed=closed).endswith(f"requests it: {words}"), closed
    assert sentence("no_drive", closed=1, asked=3.0).endswith("A is closed, which drives nothing.")
    assert sentence("stall", gear=0).endswith("in neutral.") and sentence("stall", gear=-1).endswith("in gear R.")
    assert sentence("other_gear", reported=UNKNOWN).startswith("From 4.00 s on, the control unit reports 4, but")
    assert sentence("other_gear", reported=-2.0, gear=0).startswith(
        "From 4.00 s on, the control unit reports P, but N is"
    )
    for asked in (UNKNOWN, 3.0):
        assert sentence("flare", asked=asked).startswith("After gear 3 flares at 4.00 s")
    holds = recorded(**{"C.w_rel": 0.9, "A.w_rel": -7.0})
    assert sentence("slip", signals=holds).endswith("(6.5 rad/s; A slips by 7 rad/s).")
    assert sentence("shift_time", replace(SPEC, limits={"shift_time": 1.0})).startswith(
        "No gear is engaged from 3.00 s"
    )


def verdict(name: str, found: Finding, **spec: Any) -> MonitorVerdict:
    signals, given = recorded(), replace(SPEC, **spec)
    reading = Reading({m.name: found for m in ONLINE}, np.zeros(400))
    return monitors._verdict(BY_NAME[name], given, drive(), reading, monitors._Words(given, signals), TICK_S)


def test_a_verdict_has_begin_length_and_worst_value() -> None:
    m = BY_NAME["shift_time"]
    failed = MonitorVerdict("shift_time", "failed", SENTENCES["shift_time"], m.value, "s", 1.5, 2.5, 2.5, 6.5)
    assert verdict("shift_time", FOUND) == failed and not failed.passed
    waived = verdict("shift_time", FOUND, waived={"shift_time": "old"})
    assert waived == replace(failed, state="waived", text=f"{failed.text} Waived: old") and waived.passed
    assert verdict("shift_time", FOUND, limits={"shift_time": 0.5}).limit == 0.5
    quiet = verdict("flare", replace(FOUND, failed=False, first=0))
    assert (quiet.state, quiet.first_s, quiet.lasts_s, quiet.worst, quiet.limit) == ("passed", None, None, 77.0, 60.0)
    assert verdict("flare", replace(FOUND, reached=0, failed=False)).state == "not reached"
    # of the recording alone: a pedal that is always 0.4 off
    columns = {"reported": np.full(2001, 0.9), "driver.pedal": np.full(2001, 0.5)}
    wrong = drive(column=columns.get)
    for limit, state, first_s in ((0.1, "failed", 0.0), (0.5, "passed", None)):
        spec = replace(SPEC, pedals=[("reported", "driver.pedal")], limits={"reported_pedal": limit})
        v = monitors._verdict(BY_NAME["reported_pedal"], spec, wrong, None, monitors._Words(spec, recorded()), TICK_S)
        assert (v.state, v.first_s, v.worst) == (state, first_s, pytest.approx(0.4))


#: monitors that failed, and when; of which failure each follows
CHAINS = [
    ({"tie_up": 5.0, "no_gear": 5.2}, {"no_gear": "tie_up"}),  # of one time: the first of the catalogue stays
    ({"tie_up": 5.2, "no_gear": 5.0}, {"no_gear": "tie_up"}),
    ({"tie_up": 5.0, "no_gear": 3.0}, {"tie_up": "no_gear"}),
    ({"reported_speed": 2.0, "no_gear": 2.2, "flare": 2.5}, {"no_gear": "reported_speed", "flare": "reported_speed"}),
    ({"overload": 1.0, "reported_speed": 4.0, "slip": 5.0}, {"slip": "overload"}),
    ({"flare": 4.9, "shift_time": 3.0}, {"shift_time": "flare"}),  # the time limit of 1.5 s passes at 4.5 s
    ({"flare": 5.1, "shift_time": 3.0}, {}),
    ({"flare": 4.9, "shift_length": 3.0}, {"shift_length": "flare"}),  # of a whole shift: 2 s
    ({"flare": 5.1, "shift_length": 3.0}, {}),
    ({"park": 1.0, "slip": 2.0}, {}),
]  # fmt: skip


@pytest.mark.parametrize(("began", "causes"), CHAINS)
def test_a_failure_follows_from_one_that_explains_it(began: dict[str, float], causes: dict[str, str]) -> None:
    raw = [MonitorVerdict(m.name, "failed" if m.name in began else "passed", "It fails.", m.value, m.unit, m.limit,
                          began.get(m.name)) for m in MONITORS]  # fmt: skip
    for v in monitors._explained(raw):
        cause = causes.get(v.name)
        wanted = ("follows", f"It fails. It follows from {cause}.") if cause else (
            "failed" if v.name in began else "passed", "It fails.")  # fmt: skip
        assert (v.state, v.text) == wanted, v.name


def test_the_strip_of_gears_has_what_was_asked_for_what_was_said_and_what_is_true() -> None:
    columns = {"BUS.gear_target": [1.0, 1.0, 2.0, 7.0], "BUS.gear_actual": [12.0, 14.0, 14.0, 14.0]}
    records = np.zeros(4, signal_dtype(2))
    records["tick"], records["out"] = np.arange(4), np.array(list(columns.values())).T
    signals = Signals.of(list(columns), dict.fromkeys(columns, "1"), 1.0, records)
    reading = Reading({}, np.array([0.0, 2.0, 2.0, -1.0]))
    strip = monitors._strip(SPEC, signals, reading, {n: signals[n] for n in columns}.get)
    assert strip == GearStrip(
        [Band(1.0, 2.0, "4"), Band(3.0, 3.0, "R"), Band(4.0, 4.0, "nothing")],
        [Band(1.0, 1.0, "2"), Band(2.0, 4.0, "4")],
        [Band(1.0, 1.0, "N"), Band(2.0, 3.0, "2"), Band(4.0, 4.0, "R")],
    )


def test_a_drive_is_summed_up_by_its_first_failure_or_its_gears() -> None:
    def strip(*gears: str) -> GearStrip:
        return GearStrip([], [], [Band(0.0, 1.0, gear) for gear in gears])

    def reported(state: str, first_s: float | None, text: str) -> MonitorVerdict:
        return MonitorVerdict("x", state, text, "", "", 0.0, first_s)

    way = strip("N", "1", "N", "1", "2", "R")
    assert summary([], way, 2, 123.4) == "The gearbox went 1 2 R: 2 shifts over 123 m, each as asked for and in time."
    assert summary([], strip("N", "3"), 0, None) == "The gearbox stayed in 3."
    assert summary([], strip("N"), 0, 5.0) == "No gear was engaged in this run."
    of = [
        reported("failed", None, "late"),
        reported("failed", 3.0, "b"),
        reported("failed", 2.0, "a"),
        reported("waived", 1.0, "w"),
    ]
    assert summary(of, way, 2, None) == "a"


def test_what_a_monitor_follows_are_other_monitors() -> None:
    for m in MONITORS:
        assert set(m.follows) <= BY_NAME.keys() - {m.name}, m.name
    # of the friction of an element: work within 2 s, then within a minute, and the temperature behind them
    own = {name: [f for f in BY_NAME[name].follows if f in ("heat", "heat_minute", "heat_power", "shift_time")]
           for name in ("heat", "heat_minute", "heat_power", "temperature")}  # fmt: skip
    assert own == {"heat": [], "heat_minute": ["heat"], "heat_power": ["heat", "shift_time"],
                   "temperature": ["heat", "heat_minute", "heat_power"]}  # fmt: skip
