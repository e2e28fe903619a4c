"""The report on the terminal against the numbers of a report in which every number is another one."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from told_report import (
    CHECKS,
    CLOCK,
    ENERGY,
    GATES,
    METRICS,
    NATIVE,
    PHASES,
    RX,
    SHIFTS,
    STATS,
    TICK_S,
    recorded,
    report,
)

from torqueloop.hil.report.analysis import Band
from torqueloop.hil.report.console import print_report
from torqueloop.hil.report.console_parts import BLOCKS, number, sparkline
from torqueloop.hil.report.energy import EnergyBalance
from torqueloop.hil.report.gear_console import WIDTH, strip
from torqueloop.hil.report.latency_console import timing, timing_line
from torqueloop.hil.report.monitors import GearStrip
from torqueloop.hil.results.links import BusStats

RPM = 60.0 / (2.0 * np.pi)
#: a loop of 10 s
LOOP = recorded({"engine.w": ("rad/s", np.zeros(round(10.0 / TICK_S)))})


def printed(part: Any) -> str:
    """A part as it stands on the terminal."""
    text = io.StringIO()
    console = Console(file=text, width=240, markup=False)
    print_report(part, console) if hasattr(part, "gates") else console.print(part)
    return text.getvalue()


def below(text: str, title: str) -> list[list[str]]:
    """Heading and rows of the table below a title, cells split at two blanks; up to an empty line."""
    lines = text.partition(f"\n{title} ")[2].partition("\n")[2].splitlines()
    return [re.split(r"\s{2,}", line.strip()) for line in lines[: [*map(str.strip, lines), ""].index("")]]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    return printed(report(tmp_path_factory.mktemp("run") / "desk", signals=LOOP))


def test_the_head_says_which_run_it_is_and_what_became_of_it(text: str, tmp_path: Path) -> None:
    head = re.sub(r"[│╭╮╰╯─\n]+|\s{2,}", " ", text.partition("gears")[0])
    assert "FAILED desk car · real clock · 301 ticks · 12.346 s · 1234 × real time" in re.sub(r" +", " ", head)
    assert "state hash 9f2c51d07a3be846" in head
    good = report(tmp_path, checks=CHECKS[:1], gates=GATES[:1], monitors=[])
    assert " PASSED " in printed(good) and "FAILED" not in printed(good)


def test_shifts_with_flare_in_rpm_and_heat_in_kilojoule(text: str) -> None:
    assert below(text, "shifts") == [
        ["shift", "begins s", "lasts s", "a min m/s²", "a max m/s²", "jerk m/s³", "flare 1/min", "heat kJ", "grade"],
        ["1→2", "0.310", "0.540", "-0.52", "+1.73", "23", f"{12.5 * RPM:.0f}", "8.9", "6.4"],
        ["2→3", "4.250", "0.400", "+0.44", "+2.31", "32", f"{7.25 * RPM:.0f}", "3.5", "7.1"],
        ["3→4", "9.500", "0.625", *["–"] * 6],
    ]


@pytest.mark.parametrize("known", ["a_min_mps2", "a_max_mps2", "jerk", "flare", "energy", "comfort"])
def test_of_a_shift_is_shown_what_is_known_of_it(known: str, tmp_path: Path) -> None:
    """One of the six alone."""
    value = {"a_min_mps2": "-1.50", "a_max_mps2": "+2.50", "jerk": "42", "flare": f"{4 * RPM:.0f}", "energy": "6.5",
             "comfort": "3.5"}  # fmt: skip
    numbers = {"a_min_mps2": -1.5, "a_max_mps2": 2.5, "jerk": 42.0, "flare": 4.0, "energy": 6500.0, "comfort": 3.5}
    none = dict.fromkeys(numbers)
    made = report(tmp_path)
    given = {known: numbers[known]}
    if known.startswith("a_"):
        made.shifts = [replace(SHIFTS[2], **given)]
        made.quality = [made.quality[2]]
    else:
        made.shifts, made.quality = [SHIFTS[2]], [replace(made.quality[2], **given)]
    cells = below(printed(made), "shifts")[1][3:]
    assert cells == [value[k] if k == known else "–" for k in none]


def test_monitors_that_did_not_pass_stand_with_their_sentence_the_failed_ones_first(text: str) -> None:
    assert below(text, "monitors") == [
        ["FAIL", "speeds in range", "the engine turns too fast"],
        ["so", "gears follow", "late. It follows from it."],
        ["waived", "clutch cool", "hot. Waived: old"],
        ["1 of 5 monitors passed; not reached: reverse"],
    ]


def test_gates_with_their_values_and_checks_that_failed(text: str) -> None:
    assert below(text, "gates and checks")[1:] == [
        ["pass", "missed == 0", "missed = 0, late = 1 234.5"],
        ["FAIL", "shifts == 4", "shifts = 3"],
        ["FAIL", "links are alive", "it is silent"],
        ["note", "real time not degraded", "no priority"],
        ["1 of 3 checks of every run passed"],
    ]


def test_messages_and_latencies_of_a_bus(text: str) -> None:
    head, *rows, line = below(text, "CAN received")[: len(RX) + 2]
    assert head == ["message", "ok", "format", "length", "crc", "repeat", "jump", "range", "lost", "timeout"]
    assert rows == [[name, *(str(getattr(rx, k)) for k in head[1:])] for name, rx in RX.items()]
    bus = STATS.buses["can"]
    for name in ("rx_frames", "rx_bad", "tx_frames", "tx_dropped", "rx_ring_dropped"):
        assert f"{name} {getattr(bus, name)}" in line
    assert f"rx_taken {NATIVE.rx_taken}" in line
    head, *rows = below(text, "CAN latency")
    assert head == ["µs", "p50", "p99", "p99.9", "max"]
    assert rows == [
        [name, *(f"{getattr(t, k):.1f}" for k in ("p50", "p99", "p999", "max"))]
        for name, t in (("stamp to tick", NATIVE.receive_latency_us), ("send to bus", NATIVE.send_latency_us))
    ]


def test_buses_have_their_names_where_there_are_several(tmp_path: Path) -> None:
    buses = {"powertrain": BusStats(rx=RX), "chassis": BusStats(rx={}), "body": BusStats(rx=RX)}
    text = printed(report(tmp_path, replace(STATS, buses=buses)))
    assert re.findall(r"CAN received on (\w+)", text) == ["powertrain", "body"], "of one that receives nothing, nothing"


def test_energies_in_kilojoule_below_their_kind(text: str, tmp_path: Path) -> None:
    """As long as they are more than a millionth of what was turned over, also where they are negative."""
    lines = text.partition("\nenergy balance")[2].splitlines()[1:]
    head, rows = lines[0], lines[1 : 1 + len(lines)]
    shown = {}
    for line in rows[: [*map(str.strip, rows)].index(next(x.strip() for x in rows if x.startswith("residual")))]:
        name, *values = re.finditer(r"\S+", line)
        for value in values:
            kind = next(k for k in ("supplied", "lost", "stored") if head.index(k) + len(k) == value.end())
            shown[name[0], kind] = value[0]
    terms = (("supplied", ENERGY.supplied_J), ("lost", ENERGY.lost_J), ("stored", ENERGY.stored_J))
    assert shown == {(name, kind): f"{value / 1e3:.3f}" for kind, of in terms for name, value in of.items()
                     if name != "tiny"}  # fmt: skip
    assert f"residual -1.25e+01 J = {-12.5 / 508e3:+.2e} of 5.08e+05 J" in text
    # 1 J of 10 MJ is nothing to be shown, 20 J are
    large = EnergyBalance({"engine": 1e7, "small": 1.0}, {"heat": 1e7 - 20.0, "some": 20.0}, {"lean": -15.0}, 0.0)
    text = printed(report(tmp_path, energy=large))
    assert not re.search(r"^small ", text, re.M) and re.search(r"^some +0.020", text, re.M)
    assert re.search(r"^lean +-0.015", text, re.M)


def test_the_strip_of_gears_has_a_character_for_each_part_of_the_run(tmp_path: Path) -> None:
    """Each is what held in the middle of its part; the scale ends with the recording."""
    bands = GearStrip(
        [Band(0.0, 2.5, "1"), Band(2.5, 5.0, "nothing"), Band(7.5, 10.0, "3")],
        [Band(0.0, 10.0, "R")],
        [Band(1.25, 10.0, "N")],
    )
    asked, reported, engaged = ("1" * 16 + "·" * 32 + "3" * 16), "R" * 64, "·" * 8 + "N" * 56
    assert WIDTH == 64
    lines = printed(strip(bands, 10.0)).splitlines()
    rows = {"asked": asked, "reported": reported, "engaged": engaged}
    assert lines == ["gears", *(f"{name:9}{cells}" for name, cells in rows.items()), f"{'':9}0 s{'10 s':>61}"]
    assert [len(line) for line in lines[1:]] == [9 + 64] * 4
    # of a control unit that reports nothing, nothing is shown of it; no gears at all, no strip
    assert [x.split()[0] for x in printed(strip(replace(bands, reported=[]), 10.0)).splitlines()] == [
        "gears", "asked", "engaged", "0"]  # fmt: skip
    assert strip(replace(bands, true=[]), 10.0) is None and strip(bands, 0.0) is None and strip(None, 1.0) is None
    # 2 ms a tick, and a recording that ends with the second one: a scale up to its time, not that of the first
    short = recorded({"engine.w": ("rad/s", [0.0, 0.0])}, tick_s=5.0)
    assert re.search(r"^ +0 s +10 s$", printed(report(tmp_path, signals=short, strip=bands)), re.M)


def test_the_time_of_a_late_loop_has_percentiles_phases_and_worst_ticks() -> None:
    text = "\n" + printed(timing(CLOCK))
    head, *rows = below(text, "real time")
    assert head == ["µs", "p50", "p99", "p99.9", "max", "distribution (log, log)"]
    for row, (name, t) in zip(rows, (("wake lateness", CLOCK.wake_lateness_us), ("compute time", CLOCK.compute_us)),
                              strict=False):  # fmt: skip
        assert row[:5] == [name, *(f"{getattr(t, k):.1f}" for k in ("p50", "p99", "p999", "max"))]
    lines = text.splitlines()
    first = next(line for line in lines if line.startswith("wake lateness"))
    heading = next(line for line in lines if "distribution" in line)
    assert heading.index("distribution") == first.index(BLOCKS[-1]), "the line begins below its heading"
    head, *rows = below(text, "phases")
    assert head == ["µs", "mean", "p50", "p99", "max", "of the mean tick"]
    shares = dict(zip(PHASES, ("1 %", "2 %", "50 %", "4 %", "38 %", "5 %"), strict=True))  # of 80 µs
    assert rows == [
        [name, *(f"{getattr(CLOCK.phase_us[name], k):.1f}" for k in ("mean", "p50", "p99", "max")), shares[name]]
        for name in PHASES
    ]
    head, *rows = below(text, "worst ticks")
    assert head == ["step", "lateness µs", "compute µs", "longest phase µs", "faults", "taken off"]
    worst = [("latest", w) for w in CLOCK.worst.by_lateness] + [("longest", w) for w in CLOCK.worst.by_compute]
    assert rows == [
        [name, str(w.tick), f"{w.lateness_us:.1f}", f"{w.compute_us:.1f}", f"tx {w.phase_us['tx']:.1f}",
         f"{w.minor_faults + w.major_faults:,}".replace(",", " "), f"{w.involuntary_switches}"]
        for name, w in worst
    ]  # fmt: skip
    assert f"grace: ticks {CLOCK.grace.ticks}" in text and f"longest tick µs {CLOCK.grace.compute_max_us}" in text


def test_the_time_of_a_loop_in_time_is_one_line() -> None:
    line = " ".join(printed(timing_line(CLOCK)).split())
    late, compute = CLOCK.wake_lateness_us, CLOCK.compute_us
    assert line.startswith(f"loop wake lateness p99 {late.p99} max {late.max} µs "
                           f"compute time p99 {compute.p99} max {compute.max} µs ticks {CLOCK.ticks}")  # fmt: skip
    assert timing_line(replace(CLOCK, compute_us=None, wake_lateness_us=None)) is None


def test_the_distribution_has_no_bar_without_ticks_and_is_full_at_the_most() -> None:
    """A class of one count below one of a million is a bar of one eighth; those between have their logarithm."""
    edges = [10.0 ** (k / 20) for k in range(5)]
    assert sparkline([[edges[0], 1], [edges[2], 10**6 - 1], [edges[4], 999]]) == "▁ █ ▄"
    assert sparkline([]) == "" and BLOCKS[4] == "▄"
    assert len(sparkline([[1.0, 5], [1e5, 3]])) <= 28


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "–"), (True, "yes"), (False, "no"), (1234567, "1 234 567"), (-1234.56, "-1 234.6"), (0.1, "0.1"),
     (-0.25, "-0.2"), (0.0567, "0.0567"), (-1.5e7, "-1.5e+07"), (999999.0, "999 999.0"), ("a", "a")],
)  # fmt: skip
def test_numbers_have_the_same_digits_above_and_below_zero(value: Any, shown: str) -> None:
    assert number(value) == shown


def test_a_loop_that_was_late_is_shown_whole_and_one_in_time_as_a_line(tmp_path: Path) -> None:
    late = [replace(CHECKS[0], name="every tick on time", passed=False)]
    gate = [replace(GATES[1], values={"compute_p99_us": 9.0})]
    assert METRICS["clock"] == "real"
    for checks, gates, whole in ((late, [], True), ([], gate, True), ([], GATES, False), ([], [], False)):
        text = printed(report(tmp_path, checks=checks, gates=gates))
        assert ("worst ticks" in text) == whole and ("\nloop " in text) != whole
