"""What is read of a run directory: its gears, what is missing, which numbers are assumed, what its steps did not
resolve."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from synthetic_run import change, write_run

from torqueloop.core.describe.provenance import Known, Statement
from torqueloop.hil.record.recording import ChunkWriter
from torqueloop.hil.record.run_data import ModeChange, signal_header
from torqueloop.hil.record.signals import signal_dtype
from torqueloop.hil.report.assumed import AssumedNumbers
from torqueloop.hil.report.collect import Run, load_run
from torqueloop.hil.report.remarks import resolved
from torqueloop.hil.results.run import RunInfo, RunStats, SolverStats, StreamStats

TICK_S = 0.01


def test_ratios_are_those_of_the_driveline_and_not_of_a_control_unit(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", duration_s=0.5)
    config = run / "config"
    for name in ("a_unit.toml", "z_unit.toml"):
        (config / name).write_text("[gears.1]\nratio = 9.0\n")
    (config / "m_box.toml").write_text("[components.car]\n[gears.1]\nratio = 4.7\n[gears.R]\nratio = -3.4\n")
    assert load_run(run).gears == {"1": 4.7, "R": -3.4}


def test_what_is_missing_of_a_recording_is_told_with_its_numbers(tmp_path: Path) -> None:
    """Ticks 0 to 39 and 45 to 59: five are missing, in one gap; two chunks of five are there."""
    run = write_run(tmp_path / "run", duration_s=0.5)
    for old in (run / "signals").iterdir():
        old.unlink()
    records = np.zeros(55, signal_dtype(1))
    records["tick"] = [*range(40), *range(45, 60)]
    writer = ChunkWriter(run / "signals", signal_header(["car.v"], ["m/s"], TICK_S))
    for part in (records[:40], records[40:]):
        writer.write(part.tobytes())
    writer.close()
    change(run, stats={"recording": {"signals": StreamStats(chunks=5)}})
    found = load_run(run).incomplete
    assert "signals: 5 ticks missing, 1 gaps, the first after tick 39" in found
    assert "signals: 3 of 5 chunks are missing" in found
    change(run, ended=None, state="running", duration_s=9.0)
    read = load_run(run)
    assert read.incomplete[0] == (
        "the run did not end by itself (state 'running' in run.json); recorded up to t = 0.600 s of 9 s"
    )
    (run / "modes.csv").write_text("step,t_s,element,mode,mode_name\n3,0.03,A,0,stuck\n")
    read = load_run(run)
    assert (read.modes, read.modes_source) == ([ModeChange(3, 0.03, "A", 0)], "modes.csv")


def test_the_weightiest_number_is_the_one_with_the_largest_change_of_any_metric() -> None:
    numbers = [Statement("car.toml", "t", key, 1.0, Known.ASSUMED, "assumed") for key in "abcde"]
    weights = {"t.a": {"x": 0.05, "y": -0.06}, "t.b": {"x": 0.001, "y": -0.3}, "t.c": {"x": 0.1}, "t.e": {}}
    assert [s.key for s, _ in AssumedNumbers(9, numbers, weights).weightiest] == ["b", "c", "a", "e"]
    many = [replace(numbers[0], key=str(k)) for k in range(20)]
    found = AssumedNumbers(20, many, {f"t.{k}": {"x": 0.01 * k} for k in range(20)}).weightiest
    assert [s.key for s, _ in found] == [str(k) for k in range(19, 9, -1)]


def test_steps_that_ended_with_an_impulse_name_the_elements_of_the_busiest_step() -> None:
    """In step 7 B changes twice and A once; C changes most of all, but once a step."""
    modes = [ModeChange(k, k * TICK_S, "C", k % 2) for k in range(100, 110)]
    modes += [ModeChange(7, 0.07, element, 0) for element in ("B", "A", "B")]
    run = Run(Path("run"), RunInfo("rig"), None, modes, "modes.csv")
    check = resolved(run, RunStats(solver=SolverStats(fallbacks=3)))
    assert not check.passed and not check.counts
    assert "3 steps" in check.text and "B" in check.text and "A" in check.text and "C" not in check.text
    assert resolved(run, RunStats(solver=SolverStats())).passed
    offline = replace(run.info, clock="offline")
    assert resolved(replace(run, info=offline), RunStats(solver=SolverStats(fallbacks=3))).passed
