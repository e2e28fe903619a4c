"""Faults injected from the rig file and by hand, and the limits that hold whatever is sent."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rig_help import DESK, Unit, alone, rig_file, run

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.can.units import RPM
from torqueloop.hil.record.bus_log import FLAG_REFUSED, FLAG_TX, read_bus
from torqueloop.hil.record.run_data import read_signals
from torqueloop.hil.record.signals import Signals, signal_dtype
from torqueloop.hil.rig.assemble.parts import RigParts
from torqueloop.hil.rig.assemble.safe_state import describe
from torqueloop.hil.rig.resolve.plan import RigPlan, load_plan
from torqueloop.hil.rig.run.replay import replay

MS = 1_000_000
FAULT, LIMITED = 512, 1024
IDLE = "driver.pedal = [[0.0, 0.0], [1.0, 1.0]]"


def fault(**entries: object) -> str:
    lines = [f'{k} = "{v}"' if isinstance(v, str) else f"{k} = {v}" for k, v in entries.items()]
    return "\n[[faults]]\n" + "\n".join(lines) + "\n"


def samples(plan: RigPlan, parts: RigParts) -> Signals:
    """What the tick has put into its ring."""
    records = np.frombuffer(b"".join(iter(parts.samples.drain, b"")), signal_dtype(len(plan.recorded)))
    names = [n for n, _ in plan.recorded]
    return Signals.of(names, dict.fromkeys(names, ""), plan.config.clock.tick_s, records)


def ticks(tmp_path: Path, n: int, *edits: str, add: str = "") -> tuple[RigPlan, RigParts, Signals]:
    plan, parts = alone(tmp_path, *edits, add=add)
    parts.rig.begin(0)
    assert parts.rig.ticks(n, 0) == n
    return plan, parts, samples(plan, parts)


def acted(signals: Signals, flag: int = FAULT) -> list[int]:
    """Ticks whose record has the flag."""
    return np.flatnonzero(signals.records["flags"] & flag).tolist()


@pytest.mark.parametrize(
    ("kind", "value", "wanted"),
    [
        ("offset", 0.25, lambda x: x + 0.25),
        ("gain", 0.5, lambda x: 0.5 * x),
        ("value", 0.125, lambda x: np.full_like(x, 0.125)),
        ("stuck", None, lambda x: np.full_like(x, x[0])),
    ],
)
def test_a_fault_on_a_driver_signal_reaches_the_model_in_its_time_and_leaves_the_signal(tmp_path, kind, value, wanted):
    entry = {"signal": "driver.pedal", "kind": kind, "from_s": 0.2, "until_s": 0.4}
    if value is not None:
        entry["value"] = value
    _, parts, s = ticks(tmp_path, 600, IDLE, add=fault(**entry))
    true, used = s["driver.pedal"], s["input.engine.pedal"]
    np.testing.assert_array_equal(used[:200], true[:200])
    np.testing.assert_allclose(used[200:400], wanted(true[200:400]), rtol=1e-14)
    np.testing.assert_array_equal(used[400:], true[400:])
    np.testing.assert_allclose(true, np.arange(600) * 1e-3, atol=1e-12)
    assert acted(s) == list(range(200, 400))
    assert parts.faults.stats(1e-3)[0].ticks == 200 and not parts.faults.stats(1e-3)[0].active


def test_noise_is_a_function_of_the_tick(tmp_path):
    add = fault(signal="driver.pedal", kind="noise", value=0.1)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    _, first, a = ticks(tmp_path / "a", 4000, add=add)
    _, second, b = ticks(tmp_path / "b", 4000, add=add)
    noise = a["input.engine.pedal"][:1500]  # the pedal itself rests at 0
    assert first.rig.state_hash == second.rig.state_hash
    assert np.abs(noise).max() <= 0.1 and np.abs(noise).max() > 0.099
    assert abs(noise.mean()) < 0.005 and abs(noise.std() - 0.1 / np.sqrt(3)) < 0.003
    assert abs(np.corrcoef(noise[:-1], noise[1:])[0, 1]) < 0.1
    np.testing.assert_array_equal(b["input.engine.pedal"], a["input.engine.pedal"])


def test_a_fault_on_a_received_pressure_is_in_the_unit_of_the_database(tmp_path):
    add = fault(signal="TCU_Pressure_1.p_C4", kind="value", value=3.0, from_s=0.1)
    _, _, s = ticks(tmp_path, 200, add=add)
    assert s["input.C4.p"][99] == 0.0 and s["input.C4.p"][100] == 3e5
    assert (s["TCU_Pressure_1.p_C4"] == 0.0).all(), "what was received stays as it came"


def test_the_safe_state_overrides_a_fault_on_its_inputs(tmp_path):
    plan, parts = alone(tmp_path, add=fault(signal="C4.p", kind="value", value=4e5))
    parts.rig.begin(0)
    parts.rig.ticks(100, 0)
    parts.rig.request_safe("request")
    parts.rig.ticks(300, 100 * MS)
    assert samples(plan, parts)["input.C4.p"][-1] == 0.0


def test_a_nan_into_the_model_freezes_and_one_in_an_output_is_not_sent(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    _, parts, _ = ticks(tmp_path / "a", 50, add=fault(signal="engine.pedal", kind="nan", from_s=0.02))
    cause = parts.rig.cause()
    assert (cause["cause"], cause["tick"], cause["frozen"]) == ("not_finite", 20, True)
    plan, parts, _ = ticks(tmp_path / "b", 50, add=fault(signal="HIL_Speeds.n_engine", kind="nan", from_s=0.02))
    cause = parts.rig.cause()
    assert (cause["cause"], cause["tick"], cause["frozen"]) == ("encode", 20, False)
    assert "HIL_Speeds" in describe(cause, plan.cause_name(cause))
    assert parts.buses[0].tx.counters()["HIL_Speeds"]["refused"] == 3, "due every 10 ms: 20, 30, 40"


class Listener(Unit):
    """The control unit; keeps what it got."""

    def counters(self, can_id: int, first_s: float, last_s: float) -> list[int]:
        return [d[1] & 15 for t, i, d in self.received if i == can_id and first_s < t <= last_s]


@pytest.mark.proof
@pytest.mark.parametrize(("kind", "refused"), [("drop", ""), ("crc", "crc"), ("counter", "repeat"), ("dlc", "length")])
def test_a_fault_on_a_frame_is_seen_by_the_control_unit_as_what_it_is(tmp_path, kind, refused):
    path = rig_file(tmp_path, add=fault(message="HIL_Speeds", kind=kind, from_s=0.5, until_s=0.6))
    unit = Listener()
    result = run(path, tmp_path / "r", 1.0, unit=unit)
    entry = result.stats.faults[0]
    assert entry.frames == 10 and entry.target == "HIL_Speeds" and entry.when == "from 0.5 s to 0.6 s"
    assert not result.stats.safe_state.latched
    seen = unit.counters(0x110, 0.5, 0.6)
    if kind == "drop":
        assert seen == []
    else:
        # the first frame of a counter that stands still is still right
        assert unit.tcu.refused == {refused: 9 if kind == "counter" else 10}
        assert len(seen) == 10 and len(set(seen)) == (1 if kind == "counter" else 10)
    again = replay(tmp_path / "r")
    assert again.passed and again.hash_equal


def test_a_received_frame_that_is_dropped_stands_in_the_log_as_refused(tmp_path):
    path = rig_file(tmp_path, add=fault(message="TCU_Pressure_1", kind="drop", from_s=0.3, until_s=0.4))
    run(path, tmp_path / "r", 0.6)
    frames, _, _ = read_bus(tmp_path / "r")
    came = frames[(frames["id"] == 0x210) & (frames["flags"] & FLAG_TX == 0)]
    refused = came["t_ns"][came["flags"] & FLAG_REFUSED != 0]
    assert len(came) > 50 and 18 <= len(refused) <= 21 and refused.min() >= 299 * MS and refused.max() < 401 * MS


def test_faults_switched_by_hand_are_recorded_and_replayed(tmp_path, monkeypatch):
    from rig_help import Car

    import torqueloop.hil.rig.run.session as session

    made: list[RigParts] = []
    real = session.build
    monkeypatch.setattr(session, "build", lambda *a, **k: made.append(real(*a, **k)) or made[-1])

    class Hand(Car):
        def __call__(self, message):
            if message.step in (1800, 1900):
                made[0].faults.switch("pedal", message.step == 1800)
            return super().__call__(message)

    add = fault(signal="driver.pedal", kind="gain", value=0.5, switch="pedal") + fault(
        message="HIL_Driver", kind="crc", switch="broken"
    )
    result = run(rig_file(tmp_path, add=add), tmp_path / "r", 2.0, Hand())
    s = read_signals(tmp_path / "r")
    assert acted(s) == list(range(1800, 1900))
    np.testing.assert_array_equal(s["input.engine.pedal"][1800:1900], 0.5 * s["driver.pedal"][1800:1900])
    assert [f.when for f in result.stats.faults] == ["switched by pedal", "switched by broken"]
    again = replay(tmp_path / "r")
    assert again.passed and again.compared == 2000
    with pytest.raises(ConfigError, match="did you mean 'pedal'"):
        made[0].faults.switch("pedals", True)


# --- limits ---------------------------------------------------------------------------------------------------------


def limited(**entries: object) -> str:
    text = ", ".join(f'{k} = "{v}"' if isinstance(v, str) else f"{k} = {v}" for k, v in entries.items())
    return f'outputs."HIL_Speeds.n_engine" = {{ signal = "engine.w", {text} }}'


def test_range_and_slew_hold_behind_an_injected_fault(tmp_path):
    jump = fault(signal="HIL_Speeds.n_engine", kind="value", value=6000, from_s=0.1, until_s=0.4)
    _, parts, s = ticks(tmp_path, 800, limited(min=500, max=2000, slew=10000), add=jump)
    n = s["HIL_Speeds.n_engine"] / RPM
    assert n.max() == pytest.approx(2000.0) and n.min() >= 500.0 - 1e-9
    assert np.abs(np.diff(n)).max() <= 10.0 + 1e-9, "10000 1/min per s are 10 per ms"
    assert n[99 + 50] == pytest.approx(n[99] + 500.0), "the ramp begins with the fault"
    held = acted(s, LIMITED)
    assert held[0] == 100 and parts.safety.guard_counts()[1] == len(held)
    assert not parts.rig.safe_latched


def test_the_lower_limit_holds_as_well(tmp_path):
    drop = fault(signal="HIL_Speeds.n_engine", kind="value", value=100, from_s=0.1, until_s=0.2)
    _, _, s = ticks(tmp_path, 300, limited(min=500, max=2000), add=drop)
    n = s["HIL_Speeds.n_engine"] / RPM
    assert (n[:100] > 500.0).all() and n[100:200] == pytest.approx(500.0) and (n[200:] > 500.0).all()


def test_the_first_value_is_taken_as_it_is(tmp_path):
    _, _, s = ticks(tmp_path, 5, limited(slew=1))
    n = s["HIL_Speeds.n_engine"] / RPM
    assert n[0] > 500.0 and np.ptp(n) <= 0.004 + 1e-9


def test_a_value_outside_latches_when_that_is_asked_for(tmp_path):
    jump = fault(signal="HIL_Speeds.n_engine", kind="value", value=6000, from_s=0.1)
    plan, parts, s = ticks(tmp_path, 200, limited(max=3000, on_limit="safe"), add=jump)
    cause = parts.rig.cause()
    assert (cause["cause"], cause["tick"]) == ("output", 100)
    assert (
        describe(cause, plan.cause_name(cause)) == "HIL_Speeds.n_engine, to be sent, left its range or slew (tick 100)"
    )
    assert (s["HIL_Speeds.n_engine"][100:] == 3000 * RPM).all(), "in the safe state too"


def test_without_limits_of_its_own_the_range_of_the_database_holds_and_is_counted(tmp_path):
    add = fault(signal="HIL_Driver.T_oil", kind="value", value=300.0, from_s=0.1, until_s=0.2)
    result = run(rig_file(tmp_path, add=add), tmp_path / "r", 0.5)
    s = read_signals(tmp_path / "r")
    oil = s["HIL_Driver.T_oil"]
    assert (oil[100:200] == 210 + 273.15).all() and (oil[200:] == 80 + 273.15).all()
    assert result.stats.outputs_limited["HIL_Driver.T_oil"] == 100
    assert result.report.metrics["outputs_limited_HIL_Driver_T_oil"] == 100


def test_a_healthy_drive_is_limited_only_where_its_sensor_is(tmp_path):
    result = run(DESK, tmp_path / "r", 3.0)
    # the sensor of the turbine knows no direction: below 0 it shows 0, as the database says
    assert set(result.stats.outputs_limited) <= {"HIL_Speeds.n_turbine"} and not result.stats.faults


@pytest.mark.parametrize(
    ("edits", "add", "words"),
    [
        ((), fault(signal="driver.pedl", kind="nan"), "did you mean 'driver.pedal'"),
        ((), fault(signal="driver.lever", kind="nan", from_s=2.0, until_s=1.0), "ends before it begins"),
        ((), fault(signal="rig.time", kind="nan"), "neither sent nor read"),
        ((), fault(signal="driver.pedal", kind="crc"), "a signal has no fault of kind"),
        ((), fault(message="HIL_Speed", kind="crc"), "did you mean 'HIL_Speeds'"),
        ((), fault(message="HIL_Speeds", kind="drop", value=1.0), "takes no value"),
        ((), fault(signal="driver.pedal", kind="gain"), "needs a value"),
        ((), fault(kind="nan"), "either signal or message"),
        ((), fault(signal="driver.pedal", kind="nan", switch="x", from_s=1.0), "by hand or by time"),
        ((limited(min=3000, max=2000),), "", "below min"),
        ((limited(max=20000),), "", "the range of the database"),
        ((limited(slew=-1.0),), "", "slew"),
        ((limited(on_limit="stop"),), "", "clamp"),
        (('outputs."HIL_Driver.T_oil" = { value = 80, max = 50 }',), "", "its own limits"),
    ],
)
def test_mistakes_name_their_place(tmp_path, edits, add, words):
    with pytest.raises(ConfigError, match=words) as raised:
        load_plan(rig_file(tmp_path, *edits, add=add))
    assert "rig.toml" in str(raised.value)


def test_a_fault_on_the_brake_reaches_the_vehicle_and_not_what_is_sent(tmp_path: Path) -> None:
    """What the vehicle is told in a tick is the spoilt brake; without a fault there is no such signal."""
    brake = "driver.brake = [[0.0, 0.25], [1.0, 0.25]]"
    plan, parts, signals = ticks(tmp_path, 300, brake,
                                 add=fault(signal="driver.brake", kind="gain", value=0.0, from_s=0.2))  # fmt: skip
    assert signals["driver.brake"][-1] == signals["HIL_Driver.brake"][-1] == 0.25
    assert (signals["vehicle.brake"][:190] == 0.25).all() and (signals["vehicle.brake"][210:] == 0.0).all()
    told = [parts.vehicle_out.read()[2][6]]
    plan, parts, signals = ticks(tmp_path, 300, brake)
    told.append(parts.vehicle_out.read()[2][6])
    assert told == [0.0, 0.25] and "vehicle.brake" not in signals.names
