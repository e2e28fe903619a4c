"""The ticks around the first fault: kept in memory, frozen, written by somebody else, shown in the report."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from page_figures import PageFigures
from rig_help import DESK, Car, Unit, alone, rig_file, run

from torqueloop.core.describe.errors import ConfigError
from torqueloop.cython_kernels.tick.first_fault import FirstFault
from torqueloop.hil.record.first_fault import read_first_fault
from torqueloop.hil.record.recorder import Recorder
from torqueloop.hil.record.run_data import read_signals
from torqueloop.hil.record.signals import signal_dtype
from torqueloop.hil.report.write import report_file, write_report
from torqueloop.hil.results.files import read_run_info
from torqueloop.hil.results.run import FirstFaultStats
from torqueloop.hil.rig.assemble.parts import build
from torqueloop.hil.rig.resolve.plan import load_plan

MS = 1_000_000


def short(folder: Path, *edits: str, before: float = 0.2, after: float = 0.05) -> Path:
    window = (f"safe_state.first_fault_before_s = {before}", f"safe_state.first_fault_after_s = {after}")
    return rig_file(folder, *window, *edits)


def test_every_tick_around_the_fault_is_kept_where_the_recording_thins_out(tmp_path):
    path = short(tmp_path, "record.every = 20")
    result = run(path, tmp_path / "r", 4.5, unit=Unit("silent", 3.0))
    at = result.stats.safe_state.step
    kept, thin = read_first_fault(result.out), read_signals(result.out)
    assert kept.tick.tolist() == list(range(at - 200, at + 51)) and kept.closed and not kept.gaps
    assert kept.header["latched"] == at and kept.header["cause"] == "tcu_silent"
    _, mine, theirs = np.intersect1d(kept.tick, thin.tick, return_indices=True)
    assert len(mine) == 12 or len(mine) == 13
    np.testing.assert_array_equal(kept.records["out"][mine], thin.records["out"][theirs])
    status = kept.records["status"]
    assert (status[:200] & 2 == 0).all() and (status[200:] & 2 == 2).all()
    assert (status[200:] >> 8 == 4).all(), "the cause is in the status word"
    assert result.stats.first_fault == FirstFaultStats(251, at, "first_fault")


def test_a_run_without_a_fault_leaves_none(tmp_path):
    result = run(DESK, tmp_path / "r", 0.5)
    assert read_first_fault(result.out) is None and result.stats.first_fault is None


def test_what_the_ring_holds_is_written_when_the_run_ends_before_it_is_full(tmp_path):
    path = short(tmp_path, "safe_state.stop_after_s = 0.0", before=2.0, after=0.5)
    result = run(path, tmp_path / "r", 1.0, Car("nan", 0.1))
    at = result.stats.safe_state.step
    kept = read_first_fault(result.out)
    assert kept.tick.tolist() == list(range(at + 1)), "from the first tick to the last there was"


def test_the_ring_is_left_alone_once_it_is_frozen(tmp_path):
    plan = load_plan(short(tmp_path))
    parts = build(plan, 60.0)
    parts.rig.begin(0)
    parts.rig.ticks(50, 0)
    assert parts.rig.request_safe("request")
    parts.rig.ticks(50, 50 * MS)
    assert not parts.first_fault.frozen
    parts.rig.ticks(1, 100 * MS)
    assert parts.first_fault.frozen
    before = parts.first_fault.records()
    parts.rig.ticks(500, 101 * MS)
    assert parts.first_fault.records() == before
    ticks = np.frombuffer(before, signal_dtype(len(plan.recorded)))["tick"]
    assert ticks.tolist() == list(range(101)), "shorter than the ring"


def test_a_held_ring_is_not_written_any_more(tmp_path):
    _, parts = alone(tmp_path)
    parts.rig.begin(0)
    parts.rig.ticks(10, 0)
    parts.first_fault.hold()
    before = parts.first_fault.records()
    parts.rig.ticks(10, 10 * MS)
    assert parts.first_fault.records() == before and not parts.first_fault.frozen


@pytest.mark.parametrize("written", [0, 1, 4, 5, 6, 9, 10, 23])
def test_records_come_oldest_first_however_often_the_ring_went_round(tmp_path, written):
    plan = load_plan(rig_file(tmp_path))
    parts = build(plan, 60.0)
    ring = FirstFault(len(plan.recorded), 4, 0)
    parts.rig.set_first_fault(ring)
    parts.rig.begin(0)
    parts.rig.ticks(written, 0)
    records = np.frombuffer(ring.records(), signal_dtype(len(plan.recorded)))
    assert records["tick"].tolist() == list(range(max(0, written - 5), written))


@pytest.mark.proof
def test_a_disk_that_refuses_leads_to_the_temporary_directory_and_the_report_finds_it(tmp_path, monkeypatch, capsys):
    elsewhere = tmp_path / "tmp"
    elsewhere.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))

    class Blocking(Unit):
        """Puts a file where the folder is to be made."""

        def step(self, inputs):
            if inputs.t_s >= 3.0:
                (tmp_path / "r" / "first_fault").touch()
            return super().step(inputs)

    result = run(short(tmp_path), tmp_path / "r", 4.5, unit=Blocking("silent", 3.0))
    told = result.stats.first_fault
    assert told.path.startswith(str(elsewhere)) and "not in the run directory: FileExistsError" in told.error
    assert told.path in capsys.readouterr().err
    assert len(read_first_fault(result.out, told.path).tick) == 251
    report = write_report(result.out)
    assert report.run.first_fault is not None
    assert told.path in (result.out / "report.html").read_text()


def test_a_dead_recorder_does_not_cost_the_first_fault(tmp_path, monkeypatch):
    import threading

    def broken(self):
        raise RuntimeError("cable pulled")

    monkeypatch.setattr(Recorder, "poll", broken)
    monkeypatch.setattr(threading, "excepthook", lambda *_: None)
    result = run(short(tmp_path), tmp_path / "r", 1.0, Car("nan", 0.5))
    assert any("recorder" in text for text in result.stats.degraded)
    at = result.stats.safe_state.step
    assert read_first_fault(result.out).tick.tolist() == list(range(at - 200, at + 51))


@pytest.mark.proof
def test_the_report_shows_cause_plot_and_place(tmp_path):
    edit = 'limits."engine.w".max = 1500.0'
    result = run(short(tmp_path, edit), tmp_path / "r", 3.0)
    report = write_report(result.out)
    page = (result.out / "report.html").read_text()
    section = page[page.index("<h2>First fault</h2>") :].split("</section>")[0]
    assert "engine.w left its limits" in section and "251 ticks" in section
    assert 'data-figure="first_fault"' in section
    drawn = PageFigures(page)
    lines = {line.label: line for line in drawn.lines("first_fault")}
    fault = read_first_fault(result.out)
    shown = lines["engine.w [1/min]"]
    assert np.abs(shown.y - fault["engine.w"] * 30 / np.pi).max() <= shown.exact and len(shown.x) == 251
    (mark,) = drawn.figures["first_fault"]["marks"]
    assert mark["text"] == "latched" and mark["x"] == pytest.approx((int(fault.header["latched"]) + 1) * fault.tick_s)
    assert report_file(report).run.stats.first_fault.path == "first_fault"
    assert read_run_info(result.out).stats.first_fault.ticks == 251


def test_memory_is_bounded(tmp_path):
    path = short(tmp_path, "clock.tick_s = 0.0001", before=60.0)
    with pytest.raises(ConfigError, match="256 MiB"):
        build(load_plan(path), 1.0)
