"""Faults, safe state and failed monitors of a run against a second definition from its recording (golden_faults.py)."""

from __future__ import annotations

import csv
import json
import re
from functools import cache
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from golden_faults import RPM, Failed, Faulty
from golden_metrics import About
from golden_recorded import Array, Recorded
from golden_runs import FAULTS, Run, golden_run
from golden_screens import shows
from page_text import Page


@cache
def faulty() -> Faulty:
    return Faulty(Recorded.of(golden_run(FAULTS).path))


@pytest.fixture
def run() -> Run:
    return golden_run(FAULTS)


@pytest.fixture
def f() -> Faulty:
    return faulty()


def report(run: Run) -> dict[str, Any]:
    return dict(json.loads((run.path / "report.json").read_text()))


def test_windows_and_counts_of_faults_are_those_of_the_rig_file(run: Run, f: Faulty) -> None:
    told = {fault["name"]: fault for fault in f.run.stats["faults"]}
    assert list(told) == [w.name for w in f.windows]
    for w in f.windows:
        open_ = w.end is None
        counts = (told[w.name]["frames"], told[w.name]["ticks"])
        frames = "message" in w.fault or "node" in w.fault
        assert counts == ((w.acts, None) if frames else (None, w.acts)), w
        ends = {"end": -1, "acts": -1} if open_ else {"end": w.end, "acts": w.acts}
        assert told[w.name]["windows"] == [{"step": w.begin, **ends}] and told[w.name]["active"] == open_
        assert (f.run[f"fault.{w.name}.on"] == w.holds(np.arange(f.ticks))).all()
        assert f.run[f"fault.{w.name}.acts"][-1] == w.acts
        assert told[w.name]["kind"] == w.fault["kind"] and told[w.name]["value"] == w.fault.get("value")


def test_each_fault_acts_in_its_window_and_nowhere_else(f: Faulty) -> None:
    crc, lost, oil, tie, quiet = f.windows
    for frame, of in f.run.on("powertrain"):
        k = f.tick_of(frame.t_ns)
        if frame.sent and of.name == "HIL_Speeds":
            assert not lost.holds(k)
        elif frame.sent and of.name == "HIL_Driver":
            assert of.decode(frame.data)["T_oil"] == 80 + oil.fault["value"] * oil.holds(k)
        elif not frame.sent:
            wrong = quiet.holds(k) or (of.name == "TCU_Pressure_1" and crc.holds(k))
            assert bool(frame.flags & 0x40) == wrong
    ticks = np.arange(f.ticks)
    largest = f.gearbox["components"]["C8"]["p_max_bar"] * 1e5
    assert f.run["input.C8.p"] == pytest.approx(np.where(tie.holds(ticks), largest, f.ramped("input.C8.p")))


def test_the_safe_state_is_latched_by_the_timeout_ramps_its_inputs_and_ends_the_run(run: Run, f: Faulty) -> None:
    told = f.run.stats["safe_state"]
    assert told == {"latched": True, "cause": f"required message {f.cause}", "kind": "tcu_silent", "step": f.latch,
                    "frozen": False}  # fmt: skip
    assert (f.run["rig.status"] == np.where(np.arange(f.ticks) < f.latch, f.run["rig.status"][f.latch - 1], 3)).all()
    for name in [n for n in f.run.signals if re.fullmatch(r"input\.(.+\.p|.+\.pedal)", n)]:
        assert f.run[name][f.latch :] == pytest.approx(f.ramped(name)[f.latch :], abs=1e-6), name
    assert f.ticks == f.latch + round(f.run.rig["safe_state"]["stop_after_s"] / f.tick_s) + 1
    assert f"SAFE STATE latched at step {f.latch}: required message {f.cause}" in re.sub(r"\s+", " ", run.console)


def test_the_page_shows_the_first_fault_and_the_injected_ones(run: Run, f: Faulty) -> None:
    sections = Page(run.html).sections
    first, last = f.kept
    text = re.sub(r"\s+", " ", sections["First fault"].text)
    assert f"{last - first + 1} ticks, {first} to {last}, every one of them; latched in tick {f.latch}" in text
    rows = sections["Injected faults"].tables[0][1]
    for row, w in zip(rows, f.windows, strict=True):
        frames = "message" in w.fault or "node" in w.fault
        target = next(w.fault[k] for k in ("message", "signal", "element", "node") if k in w.fault)
        acted = f"{w.acts} {'frames' if frames else 'ticks'}; begun in tick {w.begin}"
        assert (row[0], row[1], row[4]) == (target, w.fault["kind"], acted)
        assert shows(row[2], w.fault.get("value"))
    marks = {(m["text"], round(m["x"], 6)) for fig in run.drawn.figures.values() for m in fig.get("marks", [])}
    assert ("latched", round((f.latch + 1) * f.tick_s, 6)) in marks


def test_the_first_fault_draws_the_signals_around_it_in_their_units(run: Run, f: Faulty) -> None:
    first, last = f.kept
    lines = list(run.drawn.lines("first_fault"))
    assert {line.unit for line in lines} == {"", "bar", "1/min"}
    for line in lines:
        name, _, unit = line.label.partition(" [")
        factor = {"bar": 1e-5, "1/min": 1 / RPM}.get(line.unit or unit.rstrip("]"), 1.0)
        values = f.run[name][first : last + 1] * factor
        assert line.x == pytest.approx(f.t[first : last + 1], abs=1e-6), line.label
        assert np.abs(line.y - values).max() <= 1e-6 * np.ptp(values) + 1e-6 * np.abs(values).max(), line.label


# --- monitors ---------------------------------------------------------------------------------------------------------


def hottest(of: list[Array], limit: float) -> Array:
    """The one with the largest value; of several that are equal but for rounding, since one pressure acts on them, the
    one that is first beyond the limit."""
    return max(of, key=lambda x: (round(float(x.max()), 9), -int(np.argmax(x > limit))))


#: monitor -> window [s]
HEAT = {"heat": 2.0, "heat_minute": 60.0, "heat_power": 0.1}


def firsts(f: Faulty, name: str) -> list[float]:
    """When the elements with the largest value are beyond the limit first: several if equal but for rounding."""
    of = list(f.heat(HEAT[name], power=name == "heat_power").values())
    most, limit = max(float(x.max()) for x in of), f.limit(name)
    return [float(f.t[np.argmax(x > limit)]) for x in of if x.max() >= most * (1.0 - 1e-9)]


def defined(f: Faulty) -> dict[str, Failed | None]:
    """Monitor -> what it must have found; None: nothing, before the safe state."""
    heat = {name: f.heat(window, power=name == "heat_power") for name, window in HEAT.items()}
    worst = {name: hottest(list(of.values()), f.limit(name)) for name, of in heat.items()}
    peak = int(np.abs(f.a).argmax())
    rates = [(float(np.ptp(f.w_in[(f.t >= s.begin_s - 1e-9) & (f.t <= s.end_s + 1e-9)])) / (s.end_s - s.begin_s), s)
             for s in f.shifts]  # fmt: skip
    rate, abrupt = max(rates, key=lambda x: x[0])
    return {
        "shift_time": f.beyond(f.shift_time(), f.limit("shift_time"), timed=True),
        "flare": f.beyond(f.flare(), 60.0, 0.05),
        "no_drive": f.beyond(f.no_drive(), f.limit("no_drive"), timed=True),
        "acceleration": Failed(f.t[peak], None, abs(f.a[peak])),
        "shift_abrupt": Failed(abrupt.begin_s, None, rate),
        "shift_hard": Failed(f.hardest()[0], None, f.hardest()[1]),
        **{name: Failed(f.t[np.flatnonzero(x > f.limit(name))[0]], None, x.max()) for name, x in worst.items()},
    }


def test_failed_monitors_have_begin_length_and_worst_value(run: Run, f: Faulty) -> None:
    told = {m["name"]: m for m in report(run)["monitors"]}
    wanted = {name: found for name, found in defined(f).items() if found is not None}
    for name, found in wanted.items():
        assert told[name]["state"] in ("failed", "follows"), name
        values = [told[name][k] for k in ("first_s", "lasts_s", "worst")]
        if name in HEAT:
            # two elements of the same largest value but for rounding: either of them is told
            values[0] = next((x for x in firsts(f, name) if values[0] == pytest.approx(x, rel=1e-9)), values[0])
            assert values[0] in firsts(f, name), name
            found = Failed(values[0], found.lasts_s, found.worst)
        assert values == [pytest.approx(x, rel=1e-9, abs=1e-9) if x is not None else None
                          for x in (found.first_s, found.lasts_s, found.worst)], name  # fmt: skip
    failed = {n for n, m in told.items() if m["state"] in ("failed", "follows")}
    assert failed == {*wanted, "tie_up"}


def test_the_tie_up_is_seen_where_the_stuck_element_works_against_the_gear(run: Run, f: Faulty) -> None:
    told = next(m for m in report(run)["monitors"] if m["name"] == "tie_up")
    tied = f.closed["C8"] & f.closed["C7"] & f.closed["C4"] & f.closed["C11"]
    begin, end = f.looks[np.flatnonzero(tied)[[0, -1]]] * f.tick_s
    assert begin <= told["first_s"] <= begin + 0.05
    assert 0.5 * (end - begin) <= told["lasts_s"] <= end - begin + 5e-3
    # the line of the turbine torque is between that of the lower ratio and none; what is lost besides is 1 m/s² at most
    lowest = f.a[(f.t > begin) & (f.t < end + 0.1)].min()
    inside = (f.t > begin) & (f.t < end)
    line = f.run["converter.tau_turbine"][inside] * f.ratios[2] * f.w_out[inside] / f.v[inside] / 1500.0
    assert -lowest - 1.0 <= told["worst"] <= line.max() - lowest + 1.0
    assert told["text"].startswith(f"C4+C6+C7+C8+C11 work against each other at {told['first_s']:.2f} s")


def test_latched_signals_of_monitors_say_what_the_report_says(run: Run, f: Faulty) -> None:
    told = {m["name"]: m for m in report(run)["monitors"]}
    for name in [n.partition(".")[2] for n in f.run.units if n.startswith("monitor.") and n != "monitor.gear"]:
        signal = f.run[f"monitor.{name}"]
        assert (np.diff(signal) >= 0).all() and signal[-1] == (told[name]["state"] in ("failed", "follows")), name
        if signal[-1]:
            # held: flare for 50 ms, a tie-up for 20 ms; a time limit is exceeded when it has passed
            first = told[name]["first_s"] + (told[name]["limit"] if told[name]["unit"] == "s" else 0.0)
            held = {"flare": 0.05, "tie_up": 0.02}.get(name, 0.0)
            assert f.t[np.argmax(signal > 0)] == pytest.approx(first + held, abs=1e-6), name


def test_passed_monitors_tell_the_largest_value_they_have_seen(run: Run, f: Faulty) -> None:
    told = {m["name"]: m["worst"] for m in report(run)["monitors"]}
    rows = [[float(x) for x in line.split(",")] for line in _engine(f)]
    # in a gear: where full load ends; without one: where it is closed throttle
    ends = next(w for w, full, _ in rows if full <= 0.0)
    cut = next(w for w, full, drag in rows if full <= drag)
    above = f.at("engine.w") - np.where(f.at("monitor.gear") != 0.0, ends, cut)
    assert told["engine_speed"] == pytest.approx(above[np.isfinite(above)].max(), rel=1e-9)
    idle = float(f.run.layers(f.run.file("drive_528i.toml"))["components"]["engine"]["w_idle_radps"])
    assert told["stall"] == pytest.approx(0.5 * idle - f.at("engine.w").min(), rel=1e-9)
    for name in ("direction", "hunting", "skipped", "other_gear", "park", "reported_speed"):
        assert told[name] == 0.0, name
    assert told["no_gear"] == 1.0, "blocked elements are no gear, for a quarter of a second"


def _engine(f: Faulty) -> list[str]:
    """Rows of the full-load curve above 100 rad/s."""
    rows = [line for line in f.run.file("bmw_m30b28.csv").read_text().splitlines() if re.match(r"\d", line)]
    return [line for line in rows if float(line.split(",")[0]) > 100.0]


def test_a_monitor_that_follows_names_one_that_failed_before_it_ended(run: Run) -> None:
    told = {m["name"]: m for m in report(run)["monitors"]}
    for m in told.values():
        if m["state"] == "follows":
            cause = re.search(r"It follows from (\w+)\.$", m["text"])
            assert cause is not None and told[cause[1]]["state"] == "failed"
            assert told[cause[1]]["first_s"] <= m["first_s"] + (m["limit"] if m["unit"] == "s" else 0.0) + 2.0


def test_page_junit_and_console_say_the_same_of_every_monitor(run: Run) -> None:
    told = report(run)["monitors"]
    rows = Page(run.html).sections["Monitors"].tables[0][1]
    for row, m in zip(rows, told, strict=True):
        assert row[:3] == [m["state"], m["name"], m["value"]]
        unit = "" if m["unit"] == "1" else f" {m['unit']}"
        assert shows(row[3].removesuffix(unit), None if m["worst"] is None else About(m["worst"], 5e-3)), row
        assert shows(row[4].removesuffix(unit), m["limit"]) and row[4].endswith(unit)
        assert shows(row[5].removesuffix(" s"), None if m["first_s"] is None else About(m["first_s"])), row
    suite = next(s for s in ElementTree.parse(run.path / "junit.xml").getroot() if s.get("name") == "monitors")
    kinds = {"passed": [], "failed": ["failure"]}
    for case, m in zip(suite.iter("testcase"), told, strict=True):
        assert case.get("name") == m["name"] and [c.tag for c in case] == kinds.get(m["state"], ["skipped"])
        assert all(c.get("message") == m["text"] for c in case)
    said = re.sub(r"\s+", "", run.console)
    for m in told:
        if m["state"] in ("failed", "follows"):
            assert ("FAIL" if m["state"] == "failed" else "so") + m["name"] + re.sub(r"\s+", "", m["text"]) in said


def test_the_summary_is_the_failure_that_began_first(run: Run) -> None:
    failed = [m for m in report(run)["monitors"] if m["state"] == "failed"]
    assert report(run)["summary"] == min(failed, key=lambda m: m["first_s"])["text"]


# --- the plan of the monitors -----------------------------------------------------------------------------------------


def test_the_plan_of_the_monitors_has_si_units_of_gearbox_schedule_and_database(f: Faulty) -> None:
    plan = f.run.info["monitors"]
    for e in plan["gearbox"]["elements"]:
        assert e["closed_Nm"] == pytest.approx(0.03 * f.most(e["name"]), rel=1e-9)
        assert e["area_mm2"] == pytest.approx(f.lining(e["name"]), rel=1e-9)
    assert {g["name"]: g["ratio"] for g in plan["gearbox"]["gears"]} == f.run.ratios
    tcu, schedule = f.run.layers(f.run.file("soft_4hp22.toml")), plan["schedule"]
    for way in ("up", "down"):
        for pair, points in tcu["schedule"][way].items():
            assert np.array(schedule[way][pair]) == pytest.approx(np.array(points) * (0.01, RPM), rel=1e-9)
    assert schedule["kick_down"] == pytest.approx({k: v * RPM for k, v in tcu["schedule"]["kick_down"].items()})
    for key in ("on", "off"):
        assert schedule[f"kick_down_{key}"] == tcu["schedule"][f"kick_down_{key}_percent"] / 100
    for key in ("turbine_max", "turbine_force_up"):
        assert schedule[f"{key}_radps"] == pytest.approx(tcu["schedule"][f"{key}_rpm"] * RPM)
    assert schedule["gear_time_s"] == tcu["schedule"]["min_gear_time_s"]
    speeds = next(of for _, of in f.run.on("powertrain") if of.name == "HIL_Speeds")
    ranges = {f"HIL_Speeds.{s.name}": (s.minimum * RPM, s.maximum * RPM) for s in speeds.signals if s.unit == "rpm"}
    assert {p["reported"] for p in plan["pairs"]} == set(ranges)
    assert all((p["low"], p["high"]) == pytest.approx(ranges[p["reported"]]) for p in plan["pairs"])


def test_modes_of_the_table_change_where_the_recorded_modes_change(run: Run, f: Faulty) -> None:
    with open(run.path / "modes.csv", newline="") as file:
        rows = [(row["element"], int(row["step"]), float(row["t_s"]), int(row["mode"])) for row in csv.DictReader(file)]
    # an event is located within its tick
    assert rows and all(0.0 <= t - step * f.tick_s <= f.tick_s + 1e-9 for _, step, t, _ in rows)
    for e in f.elements:
        mode = f.run[f"{e}.mode"]
        # of several changes within a tick the last one is recorded; the table begins with what is not free
        told = {step: m for name, step, _, m in rows if name == e}
        assert all(mode[step] == m for step, m in told.items()), e
        assert {int(k) + 1 for k in np.flatnonzero(np.diff(mode))} <= set(told), e
