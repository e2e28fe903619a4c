"""Tables, tiles and figures of the page of a run, against the numbers of a report in which every number is another."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import told_report as told
from told_report import CLOCK, PHASES, QUALITY, RX, SHIFTS, STATS, TICK_S, recorded, report

sys.path.append(str(Path(__file__).resolve().parents[1] / "hil"))

from page_figures import PageFigures
from page_text import Page

from torqueloop.hil.report.analysis import Shift
from torqueloop.hil.report.html import draw, interesting, marks_of, render
from torqueloop.hil.report.pages import At, number, tick_at
from torqueloop.hil.results.links import BusStats, KnownMessage
from torqueloop.hil.results.run import FaultStats, FaultWindow, SafeState
from torqueloop.hil.views.figure import Figures

RPM = 60.0 / (2.0 * np.pi)


def four(value: float) -> str:
    """A number of the page below 10 000: four digits."""
    return f"{value:.4g}"


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> str:
    return render(report(_configured(tmp_path_factory.mktemp("run"))))


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


def _configured(folder: Path) -> Path:
    """A run directory with four numbers, three of them assumed, two of them weighed."""
    (folder / "config").mkdir(exist_ok=True)
    source = """source.m_kg = "assumed: a large car; range 1500..1800"\nsource.J_kgm2 = "assumed: with flywheel"
source.r_m = "assumed: tyre; range 0.25 .. 0.35"\nsource.l_m = "manual, p. 4"\n"""
    values = "m_kg = 1650\nJ_kgm2 = 0.173\nr_m = 0.3\nl_m = 2.5\n"
    (folder / "config" / "car.toml").write_text(f"[body]\n{values}{source}")
    weights = {"body.m_kg": {"t_0_100_kmh_s": 0.0812, "heat_J": -0.0345}, "body.r_m": {"heat_J": 0.25}}
    (folder / "weights.json").write_text(json.dumps(weights))
    return folder


def test_shifts_with_their_time_acceleration_jerk_and_grade(page: Page, html: str) -> None:
    (head, rows), *_ = page.sections["Shifts"].tables
    assert head == ["shift", "begins s", "lasts s", "a min m/s²", "a max m/s²", "jerk m/s³", "grade"]
    assert rows == [
        ["1→2", "0.310", "0.540", "-0.52", "+1.73", "23", "6.4"],
        ["2→3", "4.250", "0.400", "+0.44", "+2.31", "32", "7.1"],
        ["3→4", "9.500", "0.625", "–", "–", "–", "–"],
    ]
    # each leads to its time, with 0.55 s before, if the run has so much, and 0.45 s behind it
    links = re.findall(r'data-begin="(.*?)" data-end="(.*?)">(\d→\d)<', html)
    assert [(name, float(begin), float(end)) for begin, end, name in links] == [
        ("1→2", 0.0, 1.3), ("2→3", 3.7, 5.1), ("3→4", 8.95, 10.575)]  # fmt: skip


def test_criteria_of_each_shift_with_speeds_in_rpm(page: Page) -> None:
    (head, rows), *_ = page.sections["Shift quality"].tables
    assert head[3:5] == ["fill s", "flare 1/min"] and head[5:] == [
        "tie-up m/s²", "jerk m/s³", "VDV m/s^1.75", "heat J", "comfort"]  # fmt: skip
    assert rows == [
        ["1-2", "0.125", "0.725", "0.211", f"{12.5 * RPM:.0f}", "1.37", "23.4", "0.0567", "8.91e+03", "6.4"],
        ["2-3", "4.050", "0.6", "0.187", f"{7.25 * RPM:.0f}", "0.83", "31.6", "0.0342", "3.46e+03", "7.1"],
        ["3-4", "9.500", "0.625", *["–"] * 7],
    ]


@pytest.mark.parametrize("known", ["fill", "flare", "tie_up", "jerk", "vdv", "energy", "comfort"])
def test_of_a_shift_is_shown_what_is_known_of_it(known: str, tmp_path: Path) -> None:
    """One criterion alone stands below its heading."""
    quality = replace(QUALITY[2], **{known: 2.0})
    _, (row,) = Page(render(report(tmp_path, shifts=SHIFTS[2:], quality=[quality]))).sections["Shift quality"].tables[0]
    shown = {"fill": "2", "flare": "19", "tie_up": "2", "jerk": "2", "vdv": "2", "energy": "2", "comfort": "2"}
    assert row[3:] == [text if name == known else "–" for name, text in shown.items()]


def test_gates_checks_and_monitors_with_what_became_of_them(page: Page, html: str) -> None:
    (_, rows), *_ = page.sections["Gates and checks"].tables
    assert rows == [
        ["pass", "missed == 0", "missed = 0, late = 1\u202f234", "rig file: gate 1"],
        ["FAIL", "shifts == 4", "shifts = 3", "command line"],
        ["pass", "the run ended by itself", "", "every run"],
        ["FAIL", "links are alive", "it is silent", "every run"],
        ["note", "real time not degraded", "no priority", "every run"],
    ]
    section = page.sections["Monitors"]
    assert section.tables[0][1] == [
        ["passed", "shifts in time", "duration", "0.54 s", "1.5 s", "–"],
        ["failed", "speeds in range", "speed", "712", "650", "7.25 s"],
        ["follows", "gears follow", "delay", "0.75 s", "0.25 s", "7.50 s"],
        ["waived", "clutch cool", "temperature", "312 degC", "300 degC", "8.50 s"],
        ["not reached", "reverse", "torque", "–", "10 Nm", "–"],
    ]
    assert "1 of 5 monitors passed; not reached: reverse." in section.text
    assert 'data-begin="6.25" data-end="8.25">7.25 s<' in html, "a second before and behind it"
    said = page.sections[""].text
    for words in ("speeds in range (failed) the engine", "gears follow (follows) late", "clutch cool (waived) hot"):
        assert words in said
    assert "longest 0.54 s" not in said


def test_energies_in_kilojoule_the_largest_of_each_kind_first(page: Page) -> None:
    section = page.sections["Energy"]
    assert section.tables[0][1] == [
        ["engine", "supplied", "480.000", f"{480 / 508 * 100:.2f} %"],
        ["starter", "supplied", "20.000", f"{20 / 508 * 100:.2f} %"],
        ["road", "lost", "123.400", f"{123.4 / 508 * 100:.2f} %"],
        ["converter", "lost", "77.900", f"{77.9 / 508 * 100:.2f} %"],
        ["C4", "lost", "45.600", f"{45.6 / 508 * 100:.2f} %"],
        ["kinetic", "stored", "260.100", f"{260.1 / 508 * 100:.2f} %"],
        ["spring", "stored", "-8.000", f"{-8 / 508 * 100:.2f} %"],
        ["lean", "stored", "1.000", f"{1 / 508 * 100:.2f} %"],
    ]
    assert f"residual -1.250e+01 J = {-12.5 / 508e3:+.2e} of the energy" in section.text


def test_bars_of_the_energy_have_what_came_in_above_what_went_out(html: str) -> None:
    rows = PageFigures(html).rows("energy")
    assert [name for name, _ in rows] == ["came from", "went to"]
    # what a spring gives back came in
    came = {"engine": 480.0, "starter": 20.0, "spring": 8.0}
    went = {"kinetic": 260.1, "road": 123.4, "converter": 77.9, "C4": 45.6, "lean": 1.0}
    for (_, row), terms in zip(rows, (came, went), strict=True):
        ends = np.cumsum(list(terms.values()))
        assert [s[3] for s in row if s[1] - s[0] > 1e-3] == [f"{n} {x:.0f} kJ" for n, x in terms.items()]
        assert [s[1] for s in row][: len(ends)] == pytest.approx(ends)
        assert [s[0] for s in row][: len(ends)] == pytest.approx([0.0, *ends[:-1]])


TIMING = ("p50", "p90", "p99", "p999", "p9999", "max")


def test_percentiles_margin_phases_and_worst_ticks_of_the_loop(page: Page, html: str) -> None:
    tables = {head[0]: (head, rows) for head, rows in page.sections["Real time"].tables[:1]}
    percentiles, margin, phases, latest, longest = page.sections["Real time"].tables
    assert tables["µs"][0] == ["µs", "p50", "p90", "p99", "p99.9", "p99.99", "max"]
    assert percentiles[1] == [
        [name, *(four(getattr(t, k)) for k in TIMING)]
        for name, t in (("wake lateness", CLOCK.wake_lateness_us), ("compute time", CLOCK.compute_us))
    ]
    m = CLOCK.margin_us
    assert margin == (
        ["µs", "p50", "p1", "p0.1", "min"],
        [["margin to the next grid point", *map(four, (m.p50, m.p1, m.p0_1, m.min))]],
    )
    # means of 1, 2, 40, 3, 30 and 4 µs are 80 µs
    shares = dict(zip(PHASES, ("1.2 %", "2.5 %", "50.0 %", "3.8 %", "37.5 %", "5.0 %"), strict=True))
    assert phases[0] == ["phase µs", "mean", "p50", "p99", "p99.9", "max", "of the mean tick"]
    assert phases[1] == [
        [name, *(four(getattr(CLOCK.phase_us[name], k)) for k in ("mean", "p50", "p99", "p999", "max")), shares[name]]
        for name in PHASES
    ]
    for (head, rows), ticks in ((latest, CLOCK.worst.by_lateness), (longest, CLOCK.worst.by_compute)):
        assert head == ["step number", "lateness µs", "compute µs", "margin µs", *PHASES,
                        "minor faults", "major faults", "sleeps", "taken off"]  # fmt: skip
        assert rows == [
            [str(w.tick), *map(four, (w.lateness_us, w.compute_us, w.margin_us, *(w.phase_us[p] for p in PHASES))),
             *map(str, (w.minor_faults, w.major_faults, w.voluntary_switches, w.involuntary_switches))]
            for w in ticks
        ]  # fmt: skip
        for w in ticks:  # 50 ticks of 2 ms around it
            assert f'data-begin="{w.tick * TICK_S - 0.1:g}" data-end="{w.tick * TICK_S + 0.1:g}">{w.tick}<' in html


def test_counters_of_the_loop_and_of_its_grace_stand_under_their_words(page: Page) -> None:
    words = {"ticks": "ticks", "missed": "missed", "started late": "late_started", "dropped": "dropped",
             "overruns": "overruns", "lost s": "lost_time_s", "minor page faults": "minor_faults",
             "major page faults": "major_faults", "switches (sleep)": "voluntary_switches",
             "switches (taken off)": "involuntary_switches"}  # fmt: skip
    grace = {**words, "largest lateness µs": "lateness_max_us", "longest tick µs": "compute_max_us"}
    words |= {"overruns in a row": "overruns_in_row_max", "smallest margin µs": "margin_min_us", "policy": "policy",
              "max catch-up": "max_catch_up", "grace s": "grace_s", "final spin µs": "spin_us"}  # fmt: skip
    pairs = page.sections["Real time"].pairs
    # the grace has the same words, and stands behind
    assert {k: pairs[k] for k in set(words) - set(grace)} == {
        k: str(number(getattr(CLOCK, words[k]))) for k in set(words) - set(grace)}  # fmt: skip
    assert {k: pairs[k] for k in grace} == {k: str(number(getattr(CLOCK.grace, name))) for k, name in grace.items()}


def test_messages_counts_and_latencies_of_a_bus(page: Page) -> None:
    section = page.sections["CAN received"]
    (head, rows), latency, errors = section.tables
    assert head == ["received", "ok", "format", "length", "crc", "repeat", "jump", "range", "lost", "timeout"]
    assert rows == [[name, *(str(getattr(rx, k)) for k in head[1:])] for name, rx in RX.items()]
    assert latency[1] == [
        [name, *(four(getattr(t, k)) for k in ("p50", "p99", "p999", "max"))]
        for name, t in (("stamp to tick", told.NATIVE.receive_latency_us), ("send to bus", told.NATIVE.send_latency_us))
    ]
    assert errors[1] == [["ack", "3"]]
    bus = STATS.buses["can"]
    for name in ("rx_frames", "rx_bad", "tx_frames", "tx_dropped", "rx_ring_dropped"):
        assert section.pairs[name] == str(getattr(bus, name))
    for name in ("rx_taken", "tx_enobufs", "foreign_frames", "unconfirmed_age_us", "last_errno"):
        assert section.pairs[name] == str(getattr(told.NATIVE, name))


def test_links_solver_and_recorded_streams(page: Page) -> None:
    vehicle = STATS.vehicles["vehicle"]
    pairs = page.sections["Vehicle link"].pairs
    for of in (vehicle, vehicle.link):
        for name in ("taken", "stale_ticks", "age_max_ms", "accepted", "lost", "gap", "wait_max_ms", "mode"):
            if hasattr(of, name):
                assert pairs[name] == str(number(getattr(of, name))), name
    assert page.sections["Solver"].pairs == {k: str(v) for k, v in vars(STATS.solver).items()}
    assert page.sections["Sent signals held to their limits"].pairs == {"tau_engine": "17", "w_out": "23"}
    head, rows = page.sections["Recording"].tables[0]
    shown = [[row[0], *(row[head.index(k)] for k in ("chunks", "lost_records", "high_water", "cause"))] for row in rows]
    assert shown == [
        [name, str(s.chunks), str(s.lost_records), four(s.high_water), s.cause or "–"]
        for name, s in STATS.recording.items()
    ]


def test_how_each_message_is_known(tmp_path: Path) -> None:
    known = {"TCU_1": KnownMessage("bytes 0 to 3", "10 ms", "XOR", "torque from a recording", "a manual")}
    stats = replace(STATS, buses={"can": BusStats(rx=RX, known=known)})
    section = Page(render(report(tmp_path, stats))).sections["CAN received"]
    assert section.tables[-1] == (
        ["message", "layout", "period", "counter and checksum", "otherwise", "source"],
        [["TCU_1", "bytes 0 to 3", "10 ms", "XOR", "torque from a recording", "a manual"]],
    )


def test_assumed_numbers_with_what_ten_percent_more_of_them_changes(page: Page) -> None:
    section = page.sections["Assumed numbers"]
    assert "3 of the 4 numbers of this configuration" in section.text
    weighed, every = section.tables
    assert weighed == (
        ["number", "value", "heat_J", "t_0_100_kmh_s"],
        [["body.r_m", "0.3", "+25.00 %", "–"], ["body.m_kg", "1650", "-3.45 %", "+8.12 %"]],
    )
    assert every[1] == [
        ["car.toml", "body.m_kg", "1650", "1500 .. 1800", "a large car"],
        ["car.toml", "body.J_kgm2", "0.173", "–", "with flywheel"],
        ["car.toml", "body.r_m", "0.3", "0.25 .. 0.35", "tyre"],
    ]


def test_tiles_on_the_real_and_on_the_virtual_clock(page: Page, tmp_path: Path) -> None:
    late, compute = CLOCK.wake_lateness_us, CLOCK.compute_us
    ours = [
        ["shifts", "1→2→3→4", "", "71 mode changes"],
        ["ticks missed", f"{CLOCK.missed}", f"of {CLOCK.ticks}",
         f"{CLOCK.overruns} overruns · {CLOCK.lost_time_s} s lost"],
        ["wake lateness p99", four(late.p99), "µs", f"max {four(late.max)} µs"],
        ["compute p99", four(compute.p99), "µs", f"p50 {four(compute.p50)} · max {four(compute.max)} µs"],
        ["energy residual", f"{12.5 / 508e3:.1e}", "", "of 508 kJ turned over"],
        ["CAN frames taken", "422", "", "73 refused, 79 timeouts"],
        ["state hash", "9f2c51d07a3be846", "", "same inputs, same hash"],
    ]  # fmt: skip
    assert [[part.strip().removesuffix(tile[2]).strip() if k == 1 else part for k, part in enumerate(tile)]
            for tile in page.tiles] == ours  # fmt: skip
    ours[1:3] = [["ticks", str(CLOCK.ticks), "", f"virtual time, lockstep, {four(CLOCK.real_time_factor)} × real time"]]
    virtual = Page(render(report(tmp_path, info={"clock": "virtual"})))
    assert [t[3] for t in virtual.tiles] == [t[3] for t in ours] and virtual.tiles[1][1] == ours[1][1]


def test_the_head_of_the_page_says_which_run_it_is(page: Page) -> None:
    head = page.sections[""].text
    assert (
        "Gearbox and powertrain in the loop · control unit over CAN · vehicle model over ZeroMQ (latest value)" in head
    )
    assert "car · real clock · 500 Hz · 12.3 s · 2026-01-02 03:04:05" in head
    identity = page.sections["This run"].pairs
    assert (identity["tick_s"], identity["duration_s"], identity["rig"]) == ("0.002", "10", "desk")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"), (0.01, "0.01"), (-0.01234567, "-0.01235"), (0.009, "0.009"), (-0.00123456, "-0.00123"),
        (-12.3456, "-12.35"), (-1234.56, "-1\u202f235"), (9999.4, "9\u202f999"), (-12345.6, "-12\u202f346"),
        (12345.6, "12\u202f346"), (-2.5e6, "-2.5e+06"), (1234567, "1\u202f234\u202f567"), (True, "yes"), (None, "–"),
        ("", "–"), ("a", "a"),
    ],
)  # fmt: skip
def test_numbers_have_the_same_digits_above_and_below_zero(value: Any, shown: str) -> None:
    assert number(value) == shown


def test_a_tick_leads_to_the_time_around_it() -> None:
    assert tick_at("here", 200, 0.005) == At("here", 0.75, 1.25) and tick_at("here", 200, None) == "here"
    assert number(At("<", 0.75, 1.25)) == '<a class="at" href="#" data-begin="0.75" data-end="1.25">&lt;</a>'


# --- figures ----------------------------------------------------------------------------------------------------------


def test_marks_stand_at_the_time_of_what_was_out_of_order(tmp_path: Path) -> None:
    windows = [FaultWindow(100 * k, 100 * k + 9, 5) for k in range(1, 31)]
    faults = [FaultStats("engine.w", "offset", "once", windows=windows)]
    stats = replace(STATS, faults=faults, safe_state=SafeState(True, "too fast", "limit", 4000))
    marks = [(m.x, m.text) for m in marks_of(report(tmp_path, stats))]
    # of the monitors those that failed; 20 windows of a fault
    assert marks[:2] == [(7.25, "speeds in range"), (4000 * TICK_S, "safe state")]
    assert marks[2:] == [(pytest.approx(100 * k * TICK_S), "fault engine.w") for k in range(1, 21)]


def drive(seconds: float = 20.0) -> Any:
    """A recording with an element whose mode changes every 1.2 s."""
    t = np.arange(round(seconds / TICK_S)) * TICK_S
    return recorded({"engine.w": ("rad/s", 100.0 + t), "C1.mode": ("1", t // 1.2 % 2), "C1.tau": ("Nm", t)})


def test_of_many_shifts_the_one_of_each_kind_with_the_largest_jerk_is_drawn(tmp_path: Path) -> None:
    """30 shifts of three kinds; their jerk rises and falls, their fill time does the contrary."""
    shifts, quality = [], []
    for k in range(30):
        old, new = ("12", "23", "42")[k % 3]
        jerk = {9: 90.0, 4: 70.0, 26: 80.0}.get(k, 20.0 - k / 2 if k % 2 else None)
        shifts.append(Shift(old, new, 0.6 * k, 0.6 * k + 0.3))
        quality.append(replace(QUALITY[0], jerk=jerk, fill=1.0 + k if jerk is None else 1.0 / jerk))
    made = report(tmp_path, signals=drive(), shifts=shifts, quality=quality)
    figures = Figures()
    found = draw(made, figures)
    assert figures.figures[found["zoom"]].begin == pytest.approx(0.6 * 29 - 0.55), "the last one"
    named = [(name, figures.figures[figure].begin) for name, figure in found["shift_figures"]]
    assert named == [(f"{'124'[k % 3]}→{'232'[k % 3]}", pytest.approx(0.6 * k - 0.55)) for k in (4, 9, 26)]


@pytest.mark.parametrize(("names", "chosen"), [("12 23 34 43", 2), ("12 23 45", 2), ("12", 0), ("", None)])
def test_the_shift_that_is_shown_first_is_34_or_the_last(names: str, chosen: int | None) -> None:
    shifts = [Shift(*name, k, k + 0.5) for k, name in enumerate(names.split())]
    assert interesting(shifts) is (None if chosen is None else shifts[chosen])


def test_the_strip_of_gears_has_asked_told_and_engaged_with_the_shifts(tmp_path: Path) -> None:
    figures = Figures()
    draw(report(tmp_path, signals=drive(), monitors=[]), figures)
    ((_, rows),) = [("gears", p.rows) for p in figures.figures["gears"].panels]
    assert [(name, [(s.begin, s.end, s.text) for s in row]) for name, row in rows] == [
        ("asked", [(0.0, 2.5, "1"), (2.5, 10.0, "2")]),
        ("reported", [(5.0, 10.0, "3")]),
        ("engaged", [(0.0, 7.5, "N"), (7.5, 10.0, "4")]),
        ("shifts", [(s.begin_s, s.end_s, s.name) for s in SHIFTS]),
    ]


def test_the_period_is_marked_at_the_tick_time(html: str) -> None:
    for name in ("compute_us", "exceedance"):
        marks = PageFigures(html).figures[name]["marks"]
        assert [m["x"] for m in marks if m["text"] == "period"] == [1e6 * TICK_S], name
