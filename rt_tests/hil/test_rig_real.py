"""The rig on the real clock with its processes. How it ends when killed or told to: test_rig_ends.py."""

import os
from datetime import datetime, timedelta

import pytest
from rig_help import PATIENT, children, rig_file

from torqueloop.hil.realtime import rtenv
from torqueloop.hil.record.bus_log import unpack_frames
from torqueloop.hil.record.recording import read_stream
from torqueloop.hil.results.files import read_run_info
from torqueloop.hil.rig.assemble.parts import build
from torqueloop.hil.rig.resolve.plan import load_plan
from torqueloop.hil.rig.run import real_clock
from torqueloop.hil.rig.run.session import RunSpec, run_rig


@pytest.fixture
def desk(tmp_path, multicast):
    """The desk rig on a port of its own; a loaded test machine may hold everything up for long."""
    return rig_file(
        tmp_path,
        *PATIENT,
        "safe_state.overrun_limit = 0",
        "safe_state.watchdog_s = 5.0",
        own_bus=True,
    )


def asked_of_the_machine(monkeypatch):
    """What a run asks of the scheduler, by who is to have it; it is asked nevertheless."""
    asked = {}

    def spy(owner, name):
        plain = getattr(owner, name)

        def spied(*given):
            asked[name] = given
            return plain(*given)

        monkeypatch.setattr(owner, name, spied)

    spy(rtenv, "set_fifo_threads")
    spy(rtenv, "prepare_loop_thread")
    spy(real_clock, "Watchdog")
    return asked


def test_real_run_replays_to_the_same_hash_and_leaves_no_process(desk, tmp_path, monkeypatch):
    asked = asked_of_the_machine(monkeypatch)
    result = run_rig(desk, RunSpec("real", 2.0, tmp_path / "r"))
    stats = result.stats
    assert not stats.safe_state.latched, stats.safe_state
    assert stats.clock.ticks == 2000 and stats.clock.missed == stats.clock.late_started + stats.clock.dropped
    assert stats.buses["powertrain"].rx["TCU_Pressure_1"].ok > 100 and stats.vehicles["vehicle"].taken > 100
    assert "239.74.163.2" in stats.buses["powertrain"].unheard
    assert children(os.getpid()) == []
    rig = build(load_plan(result.out / read_run_info(result.out).rig_file), 2.0).rig
    data, at = read_stream(result.out / "inputs").payload(), 0
    rig.begin(int.from_bytes(data[24:32], "little"))  # now_ns of the first record
    while at < len(data):
        at = rig.replay(data, at)
    assert f"{rig.state_hash:016x}" == stats.hash
    # of 80 for the loop: its watchdog above, its links 20 below
    assert asked["prepare_loop_thread"] == (80, "auto") and asked["set_fifo_threads"][0] == 60
    assert asked["Watchdog"][1:] == (5.0, 81)
    # the first and the last frame lie between the begin and the end of the run, which are told in whole seconds
    info, bus = read_run_info(result.out), read_stream(result.out / "bus")
    times = (unpack_frames(bus)["t_ns"] + bus.header["epoch_ns"]) * 1e-9
    begin, end = (datetime.fromisoformat(text) for text in (info.started, info.ended))
    assert begin.timestamp() <= times.min() < times.max() <= (end + timedelta(seconds=1)).timestamp()


@pytest.mark.proof
def test_a_machine_that_cannot_keep_up_does_not_pass(desk, tmp_path):
    """200 ticks in a row take 3 ms of CPU each."""
    result = run_rig(desk, RunSpec("real", 0.6, tmp_path / "r", inject_busy=(100, 200, 3_000_000)))
    assert result.stats.clock.missed > 100 and result.stats.clock.missed_ratio > 0.05
    assert [g.passed for g in result.report.gates if g.text == "missed_ratio <= 0.05"] == [False]
    assert result.exit_status == 1
