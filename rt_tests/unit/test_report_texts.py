"""Small texts of a report and of messages: the numbers in them are those they speak of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from synthetic_run import write_run

from torqueloop.core.describe.errors import RangeError
from torqueloop.hil.ecu.strategy import GearSelector
from torqueloop.hil.ecu.tcu_tables import load_tcu_config
from torqueloop.hil.record.recording import ChunkWriter
from torqueloop.hil.record.run_data import read_signals, signal_header
from torqueloop.hil.report.console_parts import BLOCKS, sparkline
from torqueloop.hil.report.first_fault import fault_rows, shown
from torqueloop.hil.report.html import marks_of
from torqueloop.hil.report.pages import At
from torqueloop.hil.report.report import analyse
from torqueloop.hil.results.files import read_run_info, write_run_info
from torqueloop.hil.results.run import FaultStats, FaultWindow, FirstFaultStats, SafeState
from torqueloop.hil.rig.resolve.plan import load_plan
from torqueloop.hil.views.figure import Figures

ROOT = Path(__file__).resolve().parents[2]


def test_a_histogram_as_a_line_has_the_height_of_the_logarithm_of_one_more_than_the_count() -> None:
    """log10(n + 1) of 1, 9 and 99: 0.30, 1 and 2, of the largest 0.15, 0.5 and 1, rounded up to eighths."""
    edges = [10.0 ** (k / 20) for k in range(3)]
    assert sparkline([[edges[0], 1], [edges[1], 9], [edges[2], 99]]) == BLOCKS[2] + BLOCKS[4] + BLOCKS[8]


@pytest.fixture
def faulted(tmp_path: Path) -> Path:
    """A run with a fault of eleven windows and fifty ticks kept around the first fault."""
    run = write_run(tmp_path / "run")
    info = read_run_info(run)
    assert info is not None and info.stats is not None
    windows = [FaultWindow(100 * k, 100 * k + 7, 7) for k in range(1, 12)]
    fault = FaultStats("HIL_Speeds", "drop", "again and again", frames=77, windows=windows)
    stats = replace(info.stats, faults=[fault], first_fault=FirstFaultStats(50, 1230, "first_fault"))
    write_run_info(run, replace(info, stats=stats))
    signals = read_signals(run)
    header = signal_header(signals.names, [signals.units[n] for n in signals.names], signals.tick_s, latched=1230)
    writer = ChunkWriter(run / "first_fault", header)
    writer.write(signals.records[1200:1250].tobytes())
    writer.close()
    return run


def test_the_row_of_a_fault_says_how_often_it_acted_and_how_many_windows_are_not_named(faulted: Path) -> None:
    ((target, kind, value, when, acted),) = fault_rows(analyse(faulted))
    assert isinstance(target, At) and target.begin_s < target.end_s
    target = target.text
    assert (target, kind, value, when) == ("HIL_Speeds", "drop", "", "again and again")
    assert acted == "77 frames; begun in tick 100, 200, 300, 400, 500, 600, 700, 800 and 3 more"


def test_faults_and_the_safe_state_are_marked_at_their_time(faulted: Path) -> None:
    report = analyse(faulted)
    tick_s = report.run.info.tick_s
    begun = [w.step for w in report.stats.faults[0].windows]
    assert [(m.text, m.x) for m in marks_of(report)] == [
        ("fault HIL_Speeds", pytest.approx(tick_s * step)) for step in begun
    ]
    report.stats = replace(report.stats, safe_state=SafeState(True, "too fast", "limit", 1230))
    assert ("safe state", pytest.approx(1230 * tick_s)) in [(m.text, m.x) for m in marks_of(report)]


def test_the_first_fault_tells_its_first_and_last_tick_and_that_of_the_latching(faulted: Path) -> None:
    found = shown(analyse(faulted), Figures())
    assert found is not None
    assert (found.ticks, found.begin, found.end, found.latched) == (50, 1200, 1249, 1230)


def test_a_cycle_time_that_does_not_fit_is_told_in_milliseconds(tmp_path: Path) -> None:
    rig = tmp_path / "odd.toml"
    rig.write_text('extends = "desk_4hp22"\n[clock]\ntick_s = 0.003\n')
    with pytest.raises(RangeError, match=r"cycle time (5|10) ms does not fit the tick"):
        load_plan(rig)


def test_a_gear_selector_has_back_what_it_was(tmp_path: Path) -> None:
    config = load_tcu_config(ROOT / "configs" / "tcu" / "soft_4hp22.toml")
    for kick_down, inhibited in ((True, False), (False, True)):
        selector, other = GearSelector(config), GearSelector(config)
        selector.kick_down, selector.reverse_inhibited = kick_down, inhibited
        other.load(selector.save())
        assert (other.kick_down, other.reverse_inhibited) == (kick_down, inhibited)
        assert other.save() == selector.save()
