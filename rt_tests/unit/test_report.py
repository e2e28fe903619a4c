"""Reports from run directories: what they say, that a killed run still has one, and that nothing is made up."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import fields, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from rich.console import Console
from synthetic_run import SHIFTS, change, write_run

from torqueloop.hil.record.recording import read_stream
from torqueloop.hil.record.signals import Signals, signal_dtype
from torqueloop.hil.report import analysis
from torqueloop.hil.report.analysis import thin
from torqueloop.hil.report.collect import ReportError
from torqueloop.hil.report.console import print_report
from torqueloop.hil.report.console_parts import sparkline
from torqueloop.hil.report.html import write_figures
from torqueloop.hil.report.metrics import STANDS_MPS, _bus, _together, flatten, rebinned, time_to_100_kmh, timing_of
from torqueloop.hil.report.report import analyse
from torqueloop.hil.report.write import write_report
from torqueloop.hil.results.clock import ClockStats, Timing
from torqueloop.hil.results.files import read_run_info, write_run_info
from torqueloop.hil.results.links import BusStats, GatewayStats, NativeStats, RxMessage
from torqueloop.hil.results.run import SafeState, StreamStats
from torqueloop.hil.views.still import NoMatplotlib
from torqueloop.hil.views.style import COLOURS


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("run") / "run")


@pytest.fixture(scope="module")
def killed_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("run") / "killed", killed=True, duration_s=10.0)


def test_shifts_are_found_from_the_speeds_alone(run_dir: Path) -> None:
    report = analyse(run_dir)
    assert [s.name for s in report.shifts] == ["1→2", "2→3", "3→4"]
    for shift, (_, _, begin, length) in zip(report.shifts, SHIFTS, strict=True):
        assert begin <= shift.begin_s < shift.end_s <= begin + length + 2e-3
        assert shift.a_min_mps2 is not None and shift.a_max_mps2 is not None


def test_gates_decide_the_exit_status(run_dir: Path) -> None:
    assert analyse(run_dir).exit_status == 0
    report = analyse(run_dir, "shifts == 4")
    assert report.exit_status == 1
    assert [g.passed for g in report.gates] == [True, True, False]
    assert report.gates[-1].cause == "shifts = 3"


def test_a_gate_given_twice_counts_once(run_dir: Path) -> None:
    assert [g.source for g in analyse(run_dir, "missed == 0").gates] == ["rig file: gate 2", "command line"]


def test_metrics_have_flat_names_with_the_unit_at_the_end(run_dir: Path) -> None:
    metrics = analyse(run_dir).metrics
    assert metrics["compute_p99_us"] == pytest.approx(metrics["compute_p50_us"] * 1.8, rel=0.3)
    assert metrics["can_rx_TCU_Status_crc"] == 1 and metrics["can_rx_crc"] == 1 and metrics["can_rx_ok"] == 7500
    assert metrics["vehicle_age_max_ms"] == 2.31
    assert metrics["complete"] == 1 and metrics["degraded"] == 1 and metrics["finite"] == 1
    flat = flatten(ClockStats(3, compute_us=Timing(3, p99=1.0, hist=[(1.0, 3)])))
    assert (flat["ticks"], flat["compute_p99_us"], flat["compute_us_count"]) == (3, 1.0, 3)
    assert flat["wake_lateness_p99_us"] is None, "known by name, but not measured"
    assert not [name for name in flat if "hist" in name or "worst" in name]


@pytest.mark.proof
def test_killed_run_has_a_report_that_says_what_is_missing(killed_dir: Path) -> None:
    report = write_report(killed_dir)
    assert report.exit_status == 1 and not report.run.info.over
    assert any("recorded up to t = 10.000 s of 25 s" in line for line in report.run.incomplete)
    # ticks after the last run.json are counted from the recording
    assert report.metrics["ticks"] == 10_000
    # mode changes were rebuilt, and written as text
    assert report.run.modes_source == "recorded signals"
    assert (killed_dir / "modes.csv").read_text().splitlines()[0] == "step,t_s,element,mode,mode_name"
    page = (killed_dir / "report.html").read_text()
    assert "This run is incomplete" in page and "FAIL" in page
    failed = ElementTree.parse(killed_dir / "junit.xml").findall(".//failure/..")
    assert [case.get("name") for case in failed] == ["the run ended by itself"]


def test_a_run_that_left_only_signals_still_has_timing(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", killed=True, duration_s=3.0)
    (run / "run.json").unlink()
    report = analyse(run)
    assert set(report.rebuilt) >= {"ticks", "compute_us", "wake_lateness_us"}
    assert report.metrics["wake_lateness_max_us"] == pytest.approx(240.0)


def test_a_frame_that_is_missing_from_the_log_or_from_one_of_its_forms_fails_the_run(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", duration_s=2.0)
    name = "all frames of the buses recorded"
    assert name not in {c.name for c in analyse(run).checks}, "nobody counted"
    every = 2000 // 5 + 2000 // 10 + 2000 // 5
    for counted, text in (
        ({"bus": every, "bus.blf": every}, ""),
        ({"bus": every, "bus.blf": every - 1}, f"bus.blf: {every - 1} of {every}"),
        ({"bus": every + 1}, f"bus: {every + 1} of {every}"),
    ):
        change(run, stats={"recording": {key: StreamStats(records=n) for key, n in counted.items()}})
        (check,) = [c for c in analyse(run).checks if c.name == name]
        assert (check.passed, check.text) == (not text, text) and check.counts
    # a frame that the socket has shown of itself may be there
    buses = read_run_info(run).stats.buses
    native = {key: replace(bus, native=NativeStats(error_frames=1)) for key, bus in buses.items()}
    change(run, stats={"buses": native})
    assert all(c.passed for c in analyse(run).checks if c.name == name)


def test_gates_fail_rather_than_pass_on_what_was_not_measured(killed_dir: Path) -> None:
    report = analyse(killed_dir, "energy_residual_rel < 1e-6")
    assert not report.gates[-1].passed and "not measured" in report.gates[-1].cause


def test_latched_safe_state_fails_and_is_shown_first(tmp_path: Path) -> None:
    cause = SafeState(True, "TCU_Pressure_1 silent for 0.05 s", "tcu_silent", 2345)
    report = write_report(write_run(tmp_path / "run", duration_s=3.0, safe_state=cause))
    assert report.exit_status == 1
    page = (tmp_path / "run" / "report.html").read_text()
    assert page.index("TCU_Pressure_1 silent") < page.index("Gates and checks")


def test_junit_lists_every_gate_and_check(run_dir: Path) -> None:
    report = write_report(run_dir, "shifts == 4", html=False)
    root = ElementTree.parse(run_dir / "junit.xml").getroot()
    suites = {s.get("name"): s for s in root}
    assert len(suites["gates"].findall("testcase")) == len(report.gates) == 3 and suites["gates"].get("failures") == "1"
    assert len(suites["checks"].findall("testcase")) == len(report.checks) and suites["checks"].get("failures") == "0"
    # degraded real time and a refused frame are remarks, no failures
    assert suites["checks"].get("skipped") == "2"


def test_report_json_is_strict_json_with_the_metrics(run_dir: Path) -> None:
    def no_constant(name: str) -> float:
        raise AssertionError(f"{name} is not JSON")

    write_report(run_dir, html=False)
    data = json.loads((run_dir / "report.json").read_text(), parse_constant=no_constant)
    assert data["passed"] is True and data["exit_status"] == 0 and data["metrics"]["missed"] == 0
    assert [(s["gear_from"], s["gear_to"]) for s in data["shifts"]] == [("1", "2"), ("2", "3"), ("3", "4")]


class Strict(HTMLParser):
    """Collects ids and tags and what would need the network."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.external: list[str] = []
        self.figures: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for key, value in attrs:
            if key == "data-figure":
                self.figures.append(str(value))
            if key == "id":
                self.ids.append(str(value))
            if key in ("src", "href", "xlink:href") and value and not value.startswith(("#", "data:")):
                self.external.append(f"{tag} {value}")


def test_page_is_self_contained_with_figures_in_both_themes(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    write_report(run_dir)
    page = (run_dir / "report.html").read_text()
    parser = Strict()
    parser.feed(page)
    assert not parser.external
    assert len(parser.ids) == len(set(parser.ids))
    drawn = figures(page)
    assert {"drive", "zoom", "shift0", "shift1", "compute_us", "states", "torques", "pressures", "energy"} <= set(drawn)
    assert sorted(parser.figures) == sorted(drawn), "each figure has its place, and each place its figure"
    assert drawn["zoom"]["panels"][0]["title"] == "Shift 3→4 in detail"
    assert "C11 changes sign" in [mark["text"] for mark in drawn["zoom"]["marks"]]
    # every colour of the figures is one of the page's variables, in both themes
    roles = {x["role"] for f in drawn.values() for x in [*f["marks"], *(n for p in f["panels"] for n in p["lines"])]}
    roles |= {s["role"] for f in drawn.values() for p in f["panels"] for _, row in p["rows"] for s in row}
    assert len(roles) > 6 and roles <= set(COLOURS)
    for theme in re.findall(r"\{(--fg:.*?)\}", page):
        assert all(f"--{role}:#" in theme for role in roles)
    assert "prefers-color-scheme:dark" in page and "Leon Sorokin" in page, "uPlot's licence goes with its copy"


def figures(page: str) -> dict[str, Any]:
    """What a page draws."""
    found = re.search(r'id="figures">(.*?)</script>', page, re.S)
    assert found is not None
    return dict(json.loads(found.group(1))["figures"])


def test_figures_as_pictures_are_made_where_they_are_asked_for(run_dir: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    made = {path.stem: path.read_text() for path in write_figures(analyse(run_dir), tmp_path / "pictures")}
    assert {"drive", "zoom", "compute_us", "energy"} <= set(made)
    assert "gearbox output" in made["drive"] and "came from" in made["energy"]


def test_a_picture_without_matplotlib_says_what_to_install(
    run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(NoMatplotlib, match=r"pip install 'torqueloop\[report\]'"):
        write_figures(analyse(run_dir), tmp_path / "pictures")


def test_text_of_a_run_cannot_become_markup(tmp_path: Path) -> None:
    cause = SafeState(True, "<script>alert(1)</script>", "thread", 1)
    write_report(write_run(tmp_path / "run", duration_s=2.0, safe_state=cause))
    page = (tmp_path / "run" / "report.html").read_text()
    assert "<script>alert" not in page and "&lt;script&gt;alert" in page


def test_console_shows_timing_shifts_energy_and_gates(run_dir: Path) -> None:
    console = Console(width=110, record=True, file=open("/dev/null", "w"))
    print_report(analyse(run_dir, "shifts == 4"), console)
    text = console.export_text()
    for word in ("desk_4hp22", "FAILED", "wake lateness", "3→4", "TCU_Pressure_1", "energy balance", "shifts = 3"):
        assert word in text


def test_a_folder_that_is_no_run_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="not a run directory"):
        analyse(tmp_path)
    with pytest.raises(ReportError, match="no such directory"):
        analyse(tmp_path / "missing")


@pytest.mark.parametrize("text", ['{"rig": "des', "[" * 100_000], ids=["cut", "nested"])
def test_damaged_run_json_does_not_hide_the_signals(tmp_path: Path, text: str) -> None:
    run = write_run(tmp_path / "run", duration_s=2.0)
    (run / "run.json").write_text(text)
    report = analyse(run)
    assert report.metrics["ticks"] == 2000 and not report.passed
    assert any("run.json" in line for line in report.run.incomplete)


# --- pieces ---------------------------------------------------------------------------------------------------------


def test_thinning_keeps_first_last_and_every_extreme() -> None:
    t = np.linspace(0.0, 10.0, 100_000)
    y = np.sin(t)
    y[43_210], y[77_777] = 9.0, -9.0
    tt, yy = thin(t, y, 1000)
    assert len(tt) <= 1100 and np.all(np.diff(tt) > 0)
    assert (yy.max(), yy.min(), tt[0], tt[-1]) == (9.0, -9.0, 0.0, 10.0)


def test_sign_changes_ignore_noise_around_zero() -> None:
    t = np.arange(8.0)
    y = np.array([5.0, 0.1, -0.1, 0.1, 5.0, 0.0, -5.0, -4.0])
    assert analysis.sign_changes(t, y, 1.0) == [6.0]


def test_rebinning_keeps_every_count_and_has_no_holes() -> None:
    values = np.array([0.5, 3.0, 3.1, 900.0, 900.0])
    hist = timing_of(values).hist
    assert sum(c for _, c in hist) == 5
    even = rebinned([[0.5, 1], [3.0, 2], [900.0, 2]])
    assert sum(c for _, c in even) == 5
    ratios = np.diff(np.log10([e for e, _ in even]))
    np.testing.assert_allclose(ratios, 0.05)
    assert len(sparkline([[0.5, 1], [3.0, 2], [900.0, 2]])) <= 28


def test_time_to_100_kmh_counts_from_the_first_motion() -> None:
    """Uniform acceleration a after a wait: (100 km/h - threshold)/a, wherever the record and its samples begin."""
    for wait, a, sample in ((1.4693, 4.0, 1e-3), (0.0, 2.5, 0.01), (7.77, 3.1, 5e-3)):
        t = 100.0 + np.arange(0.0, 25.0, sample)
        v = np.maximum(0.0, a * (t - 100.0 - wait))
        assert time_to_100_kmh(t, v) == pytest.approx((100.0 / 3.6 - STANDS_MPS) / a, abs=1e-9)
    # the car stands twice before it goes: the last start counts
    v = np.where(t < 104.0, np.maximum(0.0, 3.0 - 3.0 * np.abs(t - 102.0)), v)
    assert time_to_100_kmh(t, v) == pytest.approx((100.0 / 3.6 - STANDS_MPS) / 3.1, abs=1e-9)
    assert time_to_100_kmh(t, v + 1.0) is None, "the record begins with a moving car"
    assert time_to_100_kmh(t, 0.1 * v) is None, "it does not get there"


def test_element_bands_cover_the_whole_run_once(run_dir: Path) -> None:
    signals = analyse(run_dir).run.signals
    assert signals is not None
    for element in analysis.elements(signals):
        bands = analysis.mode_bands_recorded(signals, element)
        assert sum(b.end_s - b.begin_s for b in bands) == pytest.approx(signals.t[-1] - signals.t[0])


def test_troubles_of_the_bus_are_checks_for_both_ways_to_it() -> None:
    from torqueloop.hil.report.run_checks import _bus as checks

    def words(bus: BusStats) -> dict[str, tuple[bool, bool, str]]:
        return {c.name: (c.passed, c.counts, c.text) for c in checks("", bus)}

    foreign = "nobody else sends our CAN messages"
    assert words(BusStats(gateway=GatewayStats()))[foreign][0]
    assert not words(BusStats(gateway=GatewayStats(foreign_frames=2), foreign="HIL_Driver (0x111)"))[foreign][0]
    native = NativeStats(foreign_frames=2, rx_dropped=5, bus_state_worst="passive", errors={"ack": 3, "bus_off": 0})
    found = words(BusStats(rx_frames=1000, native=native, foreign="HIL_Driver (0x111)"))
    assert not found[foreign][0] and "2 frames of another sender, first HIL_Driver (0x111)" in found[foreign][2]
    assert found["no frame lost between tick and bus"] == (False, False, "rx_dropped 5")
    assert found["CAN bus without errors"] == (False, False, "worst state passive; error frames: ack 3")
    assert all(passed for passed, _, _ in words(BusStats(rx_frames=10, native=NativeStats())).values())


def test_chunks_that_the_run_wrote_and_that_are_not_there_are_counted(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    info = read_run_info(run)
    assert info is not None and info.stats is not None
    there = len(read_stream(run / "bus").chunks)
    told = info.stats.recording | {"bus": StreamStats(chunks=there + 3)}
    write_run_info(run, replace(info, stats=replace(info.stats, recording=told)))
    assert f"bus: 3 of {there + 3} chunks are missing" in analyse(run).run.incomplete


def test_the_input_shaft_is_the_turbine_or_whatever_a_recording_calls_it() -> None:
    """The first of these names that was recorded; a gearbox without a converter has only its input shaft."""
    for names in (("turbine.w", "in.w"), ("in.w", "out.w"), ("converter.w_t",)):
        records = np.zeros(3, signal_dtype(len(names)))
        records["out"] = np.arange(len(names)) + 1.0
        signals = Signals.of(list(names), dict.fromkeys(names, "rad/s"), 1e-3, records)
        found = analysis.input_speed(signals)
        assert found is not None and (found == 1.0).all(), names
    assert analysis.input_speed(Signals.of(["out.w"], {}, 1e-3, np.zeros(3, signal_dtype(1)))) is None


def test_metrics_of_a_bus_are_sums_over_its_messages_and_the_newest_time() -> None:
    counts = {f.name: (3 + k, 40 + 2 * k) for k, f in enumerate(fields(RxMessage)) if f.type == "int"}
    messages = {name: RxMessage(**{key: both[k] for key, both in counts.items()}) for k, name in enumerate("AB")}
    for rx in (messages, dict(reversed(messages.items()))):
        found = _bus(BusStats(rx=rx, native=NativeStats(foreign_frames=7)))
        wanted = {f"rx_{key}": max(both) if key == "last_ok_ns" else sum(both) for key, both in counts.items()}
        assert {name: found[name] for name in wanted} == wanted and found["foreign_frames"] == 7


def test_metrics_of_several_links_are_together_sums_or_the_largest() -> None:
    one = {"frames": 3, "wait_max_ms": 5.0, "age_p99_ms": 7.0, "mode": "x", "rx_last_ok_ns": 11, "only": None}
    other = {"frames": 4, "wait_max_ms": 2.0, "age_p99_ms": 9.0, "mode": "y", "rx_last_ok_ns": 10, "only": 6}
    for parts in ({"a": one, "b-1": other}, {"b-1": other, "a": one}):
        flat = _together("can", parts)
        assert {k: flat[f"can_{k}"] for k in ("frames", "wait_max_ms", "age_p99_ms", "rx_last_ok_ns", "only")} == {
            "frames": 7, "wait_max_ms": 5.0, "age_p99_ms": 9.0, "rx_last_ok_ns": 11, "only": 6}  # fmt: skip
        assert (flat["can_a_frames"], flat["can_b_1_wait_max_ms"]) == (3, 2.0)
        assert sorted(flat["can_mode"].split(" | ")) == ["x", "y"]
