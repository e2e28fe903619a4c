"""Each detector of the safe state, provoked: cause, reaction, and that nothing else was disturbed."""

import numpy as np
import pytest
from rig_help import DESK, Car, Unit, rig_file, run

from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components.files import load
from torqueloop.core.simulate.offline import make_kernel
from torqueloop.cython_kernels.kernel.kernel import KernelState
from torqueloop.cython_kernels.tick.rig import Rig
from torqueloop.cython_kernels.tick.safety import Safety
from torqueloop.hil.record.run_data import read_signals
from torqueloop.hil.record.signals import signal_dtype
from torqueloop.hil.results.files import read_run_info
from torqueloop.hil.rig.assemble.parts import build
from torqueloop.hil.rig.assemble.safe_state import describe
from torqueloop.hil.rig.resolve.plan import load_plan
from torqueloop.hil.rig.run.session import RunSpec, StartError, run_rig

PRESSURES = [f"input.{n}.p" for n in ("C4", "C5", "C6", "C7", "C8", "C11", "C12", "lockup")]


def test_nan_from_the_vehicle_is_refused_counted_and_latches_after_the_limit(tmp_path):
    result = run(DESK, tmp_path / "r", 3.0, Car("nan", 2.0))
    safe = result.stats.safe_state
    assert safe.latched and safe.kind == "vehicle_data" and 2000 <= safe.step <= 2020
    assert result.stats.vehicles["vehicle"].refused >= 10
    signals = read_signals(result.out)
    assert np.isfinite(signals.records["out"]).all(), "the NaN must not get in"
    assert result.exit_status == 1


def test_refused_answers_with_good_ones_between_them_do_not_add_up(tmp_path):
    class EveryOther(Car):
        def __call__(self, message):
            self.at_s = 0.0 if message.step % 2 else 1e9
            return super().__call__(message)

    result = run(DESK, tmp_path / "r", 1.0, EveryOther("nan"))
    assert result.stats.vehicles["vehicle"].refused > 100 and not result.stats.safe_state.latched


def test_silent_vehicle_is_held_then_ramped_then_latches(tmp_path):
    result = run(DESK, tmp_path / "r", 4.0, Car("silent", 3.0))
    signals = read_signals(result.out)
    force = signals["input.road.F"]
    k = 2999  # the last tick with a fresh value
    assert force[k] < -0.5
    held = force[k : k + 300]  # age limit 0.1 s and hold 0.2 s
    np.testing.assert_array_equal(held, held[0])
    np.testing.assert_allclose(force[k + 400], 0.5 * held[0], rtol=0.02)  # in the middle of the ramp of 0.2 s
    assert force[k + 510] == 0.0
    stale = np.flatnonzero(signals.records["flags"] & 8)
    assert abs(stale[0] - (k + 101)) <= 1, "old from the first tick beyond the age limit on"
    safe = result.stats.safe_state
    assert safe.kind == "vehicle_silent" and abs(safe.step - (k + 500)) <= 2
    assert "500 ms" in safe.cause


def test_silent_control_unit_at_speed_opens_all_clutches_and_closes_the_pedal(tmp_path):
    result = run(DESK, tmp_path / "r", 4.5, unit=Unit("silent", 3.0))
    safe = result.stats.safe_state
    assert safe.kind == "tcu_silent" and "TCU_Pressure_1" in safe.cause
    assert abs(safe.step - 3296) <= 1  # last frame at 2.995 s, timeout 0.3 s
    signals = read_signals(result.out)
    assert signals["car.v"][safe.step] > 1.0
    assert max(signals[n][safe.step - 1] for n in PRESSURES) > 1e5
    for name in [*PRESSURES, "input.engine.pedal"]:
        after = signals[name][safe.step : safe.step + 202]
        assert (np.diff(after) <= 0).all() and after[-1] == 0.0, name
        # the ramp of 0.2 s is a straight line
        before = signals[name][safe.step - 1]
        np.testing.assert_allclose(after[:201], before * np.linspace(1.0, 0.0, 201), rtol=1e-9, atol=1e-9)
    assert len(signals.tick) == safe.step + 1001, "one second is shown, then the run ends"
    assert signals["HIL_Driver.rig_status"][-1] == 3.0


@pytest.mark.proof
@pytest.mark.parametrize(("fault", "counter"), [("crc", "crc"), ("counter", "repeat"), ("length", "length")])
def test_bad_frames_change_nothing_but_counters_then_latch_as_refused(tmp_path, fault, counter):
    result = run(DESK, tmp_path / "r", 3.5, unit=Unit(fault, 2.0))
    rx = result.stats.buses["powertrain"].rx["TCU_Pressure_1"]
    assert getattr(rx, counter) > 50
    signals = read_signals(result.out)
    held = signals["TCU_Pressure_1.p_C4"][2010:2290]
    np.testing.assert_array_equal(held, held[0])
    # somebody sends: refused frames, also with a counter that stands still, are not silence
    assert result.stats.safe_state.kind == "tcu_frames"
    assert "TCU_Pressure_1" in result.stats.safe_state.cause
    assert 2290 <= result.stats.safe_state.step <= 2305


def test_a_short_burst_of_bad_frames_is_survived(tmp_path):
    result = run(DESK, tmp_path / "r", 2.5, unit=Unit("crc", 2.0, 2.1))
    assert result.stats.buses["powertrain"].rx["TCU_Pressure_1"].crc == 20
    assert not result.stats.safe_state.latched


def test_limit_names_the_signal(tmp_path):
    path = rig_file(tmp_path, 'limits."engine.w".max = 1500.0')
    result = run(path, tmp_path / "r", 3.0)
    assert result.stats.safe_state.kind == "limit" and "engine.w" in result.stats.safe_state.cause


@pytest.fixture
def alone(tmp_path):
    """Plan and parts of the desk rig, not armed yet, that waits for nobody."""
    path = rig_file(
        tmp_path,
        "bus.powertrain.rx_timeout_s.TCU_Pressure_1 = 60.0",
        "bus.powertrain.rx_timeout_s.TCU_Pressure_2 = 60.0",
        "vehicle.age_limit_s = 60.0",
    )
    plan = load_plan(path)
    return plan, build(plan, 60.0)


def test_nan_of_the_model_freezes_the_rig_and_silences_it(alone):
    plan, parts = alone
    parts.rig.begin(0)
    parts.rig.ticks(200, 0)
    parts.buses[0].tx_ring.pop_all()
    good = parts.rig.value(plan.table.slot("engine.w"))
    speeds = parts.state.u
    speeds[0] = np.nan
    parts.state.u = speeds
    parts.rig.ticks(50, 200_000_000)
    cause = parts.rig.cause()
    assert cause["latched"] and cause["cause"] == "not_finite" and cause["tick"] == 200 and cause["frozen"]
    assert "not finite" in describe(cause, plan.cause_name(cause))
    assert parts.rig.value(plan.table.slot("engine.w")) == good, "the last good value stays"
    assert parts.rig.value(plan.table.slot("rig.status")) == 4.0
    sent = [can_id for can_id, _, _, _ in parts.buses[0].tx_ring.pop_all()]
    assert not sent, "nothing is sent that nobody can vouch for"
    samples = np.frombuffer(b"".join(iter(parts.samples.drain, b"")), signal_dtype(len(plan.recorded)))
    assert len(samples) == 250 and np.isfinite(samples["out"]).all()


def test_an_output_that_overflows_where_the_state_does_not_is_named(alone):
    plan, parts = alone
    parts.rig.begin(0)
    parts.rig.ticks(200, 0)
    speeds = parts.state.u
    speeds[1] = 1e200  # its square is beyond what a double holds
    parts.state.u = speeds
    parts.rig.ticks(10, 200_000_000)
    cause = parts.rig.cause()
    assert (cause["cause"], cause["tick"], cause["frozen"]) == ("not_finite", 200, True)
    assert plan.cause_name(cause) == "energy.kinetic" and np.isfinite(parts.state.u).all()
    assert np.isfinite(parts.rig.value(plan.table.slot("energy.kinetic"))), "the last good value stays"


DISCS = 14


def many_stops(tmp_path, h_s: float = 0.01):
    """A rig of discs whose brakes stop them one after the other: more events in one step than are handled singly."""
    lines, connections = [], []
    for k in range(DISCS):
        w = 0.1 * (k + 0.5) / DISCS
        lines.append(f'[components.J{k}]\nkind = "Inertia"\nJ_kgm2 = 1.0\nw0_radps = {w}\n')
        lines.append(f'[components.B{k}]\nkind = "Brake"\nfn_max_N = 10.0\nmue_pos = 1.0\n')
        connections.append(f'["J{k}.flange_b", "B{k}.flange_a"]')
    head = f'name = "stops"\nconnections = [{", ".join(connections)}]\n\n'
    (tmp_path / "stops.toml").write_text(head + "\n".join(lines))
    compiled = compile_driveline(load(tmp_path / "stops.toml"))
    model = make_kernel(compiled, h_s, "auto")
    state = KernelState(model)
    n_in, n_out = len(compiled.input_names), len(compiled.output_names)
    rig = Rig(2 + n_in + n_out, h_s)
    rig.set_model(model, state, 2, 2 + n_in, 1)
    rig.set_initial({2 + k: 1.0 for k in range(n_in)})
    safety = Safety(2 + n_in + n_out, h_s)
    rig.set_safety(safety)
    return rig, safety, state


@pytest.mark.parametrize(("limit", "latched"), [(1, True), (2, False), (0, False)])
def test_steps_the_solver_cannot_resolve_latch_when_there_are_too_many_in_a_row(tmp_path, limit, latched):
    rig, safety, state = many_stops(tmp_path)
    safety.set_solver_limit(limit)
    rig.begin(0)
    rig.ticks(20, 0)
    assert state.counters["fallbacks"] == 1, "one step, more than 12 discs come to rest in it"
    assert rig.safe_latched == latched
    if latched:
        cause = rig.cause()
        assert (cause["cause"], cause["tick"], cause["detail"], cause["frozen"]) == ("solver", 0, 1, True)
        assert describe(cause) == "the solver could not resolve a step in 1 ticks in a row (tick 0)"
        assert state.step_no == 1, "no further step"


@pytest.mark.parametrize(("between", "latched"), [(0, True), (3, False)])
def test_steps_the_solver_cannot_resolve_count_in_a_row_only(tmp_path, between, latched):
    rig, safety, state = many_stops(tmp_path)
    turning = state.u.copy()
    safety.set_solver_limit(2)
    rig.begin(0)
    rig.ticks(1 + between, 0)
    state.u = turning
    rig.ticks(1, 0)
    assert state.counters["fallbacks"] == 2 and rig.safe_latched == latched


def test_solver_failure_freezes_the_rig_like_nan(alone):
    _, parts = alone
    parts.rig.begin(0)
    parts.rig.ticks(20, 0)
    parts.buses[0].tx_ring.pop_all()
    steps = parts.state.step_no
    assert parts.rig.request_safe("solver", 2)
    parts.rig.ticks(30, 20_000_000)
    assert parts.rig.cause()["cause"] == "solver" and parts.rig.cause()["frozen"]
    assert parts.state.step_no == steps and not parts.buses[0].tx_ring.pop_all()


def test_a_signal_that_is_no_number_is_not_sent_and_names_its_message(alone):
    plan, parts = alone
    # a constant of the rig file that is not finite: the file's reader refuses it, so it is put in behind it
    slot = plan.table.slot("HIL_Engine.T_coolant")
    parts.rig.set_initial({**plan.table.initial, slot: float("nan")})
    parts.rig.begin(0)
    parts.rig.ticks(20, 0)
    cause = parts.rig.cause()
    assert cause["cause"] == "encode" and "HIL_Engine" in describe(cause, plan.cause_name(cause))
    sent = {can_id for can_id, _, _, _ in parts.buses[0].tx_ring.pop_all()}
    assert sent == {0x110, 0x111}, "the other messages go on"
    assert parts.buses[0].tx.counters()["HIL_Engine"]["refused"] >= 1


def test_a_bus_that_takes_no_frames_latches_with_the_number_lost(alone):
    _, parts = alone
    parts.rig.begin(0)
    parts.rig.ticks(20_000, 0)  # nobody empties the ring: 300 frames a second against room for 4096
    cause = parts.rig.cause()
    assert cause["cause"] == "bus" and "10 lost in a row" in describe(cause)
    assert parts.rig.counters()["tx_dropped"] >= 10


def test_a_full_queue_is_no_input_of_a_tick_but_its_latch_is(alone):
    plan, parts = alone
    again = build(plan, 60.0)
    records = b""
    parts.rig.begin(0)
    again.rig.begin(0)
    while not parts.rig.finished:
        parts.rig.ticks(1000, parts.rig.tick * plan.period_ns)
        records += parts.inputs.drain()
    at = 0
    while at < len(records):
        at = again.rig.replay(records, at)
        again.buses[0].tx_ring.pop_all()  # here there is always room
    assert again.rig.cause() == parts.rig.cause() and again.rig.cause()["cause"] == "bus"
    assert again.rig.tick == parts.rig.tick and again.rig.state_hash == parts.rig.state_hash


def test_first_cause_stays(tmp_path):
    result = run(DESK, tmp_path / "r", 4.5, Car("silent", 3.0), Unit("silent", 3.1))
    assert result.stats.safe_state.kind == "tcu_silent"  # 3.095 + 0.3 comes before 3.0 + 0.5


def test_vehicle_that_never_answers_is_named_and_nothing_is_armed(tmp_path):
    path = rig_file(tmp_path, "vehicle.start_timeout_s = 0.3\nwithout vehicle.start")
    with pytest.raises(StartError, match="vehicle.*has not answered"):
        run_rig(path, RunSpec("virtual", 1.0, tmp_path / "r"))
    info = read_run_info(tmp_path / "r")
    assert info.state == "failed" and "has not answered" in info.error


def test_vehicle_process_that_dies_at_once_is_reported_with_its_last_words(tmp_path):
    broken = tmp_path / "vehicle.toml"
    broken.write_text((DESK.parents[1] / "vehicles" / "bmw_528i_e28.toml").read_text() + "\n[wings]\nspan_m = 3.0\n")
    path = rig_file(tmp_path, f'vehicle.start = "{broken}"')
    with pytest.raises(Exception, match="wings"):
        run_rig(path, RunSpec("virtual", 1.0, tmp_path / "r"))
    assert not (tmp_path / "r").exists(), "a wrong input is found before anything is started"
