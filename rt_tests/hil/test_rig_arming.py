"""Disarm and arm again: ramps, silence, and that a replay does the same."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from rig_help import DESK, Car, rig_file, run
from rig_help import alone as patient
from waiting import PATIENCE_S, wait_for

from torqueloop.cython_kernels.tick.rig import Rig
from torqueloop.hil.record.run_data import read_signals
from torqueloop.hil.record.signals import signal_dtype
from torqueloop.hil.rig.assemble.parts import build
from torqueloop.hil.rig.online.rig_control import RigControl
from torqueloop.hil.rig.resolve.plan import load_plan
from torqueloop.hil.rig.run.replay import replay

MS = 1_000_000
FLAG_DISARMING = 8


def alone(tmp_path: Path):  # type: ignore[no-untyped-def]
    path = rig_file(
        tmp_path,
        "bus.powertrain.rx_timeout_s.TCU_Pressure_1 = 0.9",
        "bus.powertrain.rx_timeout_s.TCU_Pressure_2 = 0.9",
        "vehicle.age_limit_s = 0.9",
        "driver.pedal = 0.5",
    )
    plan = load_plan(path)
    return plan, build(plan, 60.0)


def test_disarm_ramps_then_is_silent_until_armed_and_goes_on_in_the_state_kept(tmp_path: Path) -> None:
    plan, parts = alone(tmp_path)
    rig, pedal = parts.rig, plan.table.slot("input.engine.pedal")
    assert rig.state == "off"
    rig.begin(0)
    assert rig.state == "armed" and rig.ticks(100, 0) == 100
    parts.buses[0].tx_ring.pop_all()
    rig.disarm()
    assert rig.ticks(1, 100 * MS) == 1 and rig.state == "disarming"
    assert rig.value(plan.table.slot("rig.status")) == 0.0, "the control unit is told: off"
    assert rig.ticks(1000, 101 * MS) == 200, "the ramp of 0.2 s and no tick more"
    assert rig.state == "disarmed" and rig.value(pedal) == 0.0
    assert parts.buses[0].tx_ring.pop_all(), "frames go on while it ramps"
    steps, digest = parts.state.step_no, rig.state_hash
    assert rig.ticks(1000, 301 * MS) == 0 and parts.buses[0].tx_ring.pop_all() == []
    assert parts.state.step_no == steps and rig.state_hash == digest and rig.tick == 301
    # 10 s later: no age is counted over the pause, no timeout
    rig.arm()
    assert rig.ticks(500, 10_301 * MS) == 500 and rig.state == "armed" and rig.tick == 801
    assert rig.value(pedal) == 0.5 and not rig.safe_latched
    assert rig.value(plan.table.slot("rig.time")) == pytest.approx(0.801), "the pause is not simulated"
    # and counted anew from there: vehicle and control unit have never come
    rig.ticks(1000, 10_801 * MS)
    assert rig.cause()["cause"] == "tcu_silent" and rig.cause()["tick"] == 301 + 901


def test_armed_again_in_the_middle_of_the_ramp(tmp_path: Path) -> None:
    plan, parts = alone(tmp_path)
    rig = parts.rig
    rig.begin(0)
    rig.ticks(10, 0)
    rig.disarm()
    rig.ticks(100, 10 * MS)
    assert rig.state == "disarming" and 0.0 < rig.value(plan.table.slot("input.engine.pedal")) < 0.5
    rig.arm()
    rig.ticks(1, 110 * MS)
    assert rig.state == "armed" and rig.value(plan.table.slot("input.engine.pedal")) == 0.5


def test_the_safe_state_wins_over_disarming(tmp_path: Path) -> None:
    _, parts = alone(tmp_path)
    rig = parts.rig
    rig.begin(0)
    rig.ticks(10, 0)
    rig.disarm()
    rig.ticks(10, 10 * MS)
    rig.request_safe("request")
    assert rig.ticks(300, 20 * MS) == 300, "its ticks go on"
    assert rig.state == "safe" and parts.rig.cause()["cause"] == "request"
    rig.arm()
    rig.ticks(10, 320 * MS)
    assert rig.state == "safe", "it is never left"


def test_disarmed_on_the_real_clock_wakes_without_ticks_and_a_fault_ends_it() -> None:
    rig = Rig(10, 5e-3)
    loop = threading.Thread(target=rig.run, daemon=True)
    loop.start()
    rig.arm()
    while rig.tick < 5:
        pass
    rig.disarm()
    while rig.state != "disarmed":
        assert loop.is_alive()
    tick, beat = rig.tick, rig.heartbeat
    while rig.heartbeat < beat + 20:
        assert loop.is_alive()
    assert rig.tick == tick
    rig.arm()
    while rig.tick < tick + 5:
        assert loop.is_alive()
    rig.disarm()
    while rig.state != "disarmed":
        assert loop.is_alive()
    rig.request_safe("thread")
    loop.join(PATIENCE_S)
    assert not loop.is_alive() and rig.cause()["cause"] == "thread"


@pytest.mark.parametrize(("asked", "disarmed", "ticks"), [
    ("arm", True, True), ("disarm", False, False), ("", True, False), ("", False, True),
])  # fmt: skip
def test_a_client_that_asks_before_the_participants_have_answered_is_served_when_they_have(
    tmp_path: Path, asked: str, disarmed: bool, ticks: bool
) -> None:
    """Its channel is open before them. No tick comes without them, and what it has asked for is not forgotten."""
    plan, parts = patient(tmp_path)
    rig, control = parts.rig, RigControl(plan, parts, tmp_path)
    loop = threading.Thread(target=rig.run, daemon=True)
    loop.start()
    if asked:
        assert getattr(control, asked)() == "off"
    wait_for(lambda: rig.heartbeat > 20, loop.is_alive)
    assert rig.state == "off" and rig.tick == 0
    control.ready(disarmed)
    beat = rig.heartbeat
    wait_for(lambda: rig.tick > 5 if ticks else rig.heartbeat > beat + 20, loop.is_alive)
    assert (rig.state == "armed") == ticks == (rig.tick > 0)
    if ticks:
        control.disarm()
        wait_for(lambda: rig.state == "disarmed", loop.is_alive)
    control.arm()
    wait_for(lambda: rig.state == "armed", loop.is_alive)
    rig.stop()
    loop.join(PATIENCE_S)


class Operator(Car):
    """Disarms at a step and arms again when the rig has been silent for a while."""

    rig: Rig | None = None

    def __call__(self, message):  # type: ignore[no-untyped-def]
        if message.step == 700 and self.rig is not None:
            self.rig.disarm()
            threading.Thread(target=self._later, daemon=True).start()
        return super().__call__(message)

    def _later(self) -> None:
        assert self.rig is not None
        while self.rig.state != "disarmed":
            pass
        self.rig.arm()


def test_a_run_that_was_disarmed_replays_to_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torqueloop.hil.rig.run.session as session

    operator = Operator()
    real = session.build

    def build_and_tell(*arguments, **named):  # type: ignore[no-untyped-def]
        parts = real(*arguments, **named)
        operator.rig = parts.rig
        return parts

    monkeypatch.setattr(session, "build", build_and_tell)
    result = run(DESK, tmp_path / "r", 2.0, operator)
    signals = read_signals(tmp_path / "r")
    disarming = np.flatnonzero(signals.records["status"] & FLAG_DISARMING)
    assert disarming[0] == 700 and len(disarming) == 201
    assert result.stats.clock.ticks == 2000 and not result.stats.safe_state.latched
    assert signals.records.dtype == signal_dtype(len(signals.names))
    again = replay(tmp_path / "r")
    assert again.passed and again.compared == 2000 and again.hash_equal
