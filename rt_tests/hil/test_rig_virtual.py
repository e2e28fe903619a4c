"""The rig on the virtual clock: the whole chain CAN frames -> codec -> model -> codec -> frames, vehicle, recording."""

import threading
from datetime import datetime

import numpy as np
import pytest
from rig_help import DESK, PROCESS, Unit, rig_file, run
from waiting import PATIENCE_S, wait_for

from torqueloop.hil.record.bus_log import unpack_frames
from torqueloop.hil.record.recording import read_stream
from torqueloop.hil.record.run_data import read_modes, read_signals
from torqueloop.hil.results.files import read_run_info
from torqueloop.hil.rig.assemble.parts import build
from torqueloop.hil.rig.resolve.plan import load_plan
from torqueloop.hil.rig.run.session import RunSpec, run_rig


@pytest.fixture(scope="module")
def pull_away(tmp_path_factory):
    """2.5 s: lever to D, pedal down, the car moves."""
    return run(DESK, tmp_path_factory.mktemp("rig") / "a", 2.5)


def test_two_runs_give_the_same_hash_and_the_same_record(pull_away, tmp_path):
    again = run(DESK, tmp_path / "b", 2.5)
    assert again.stats.hash == pull_away.stats.hash
    first, second = read_signals(pull_away.out), read_signals(again.out)
    assert len(first.tick) == 2500
    assert first.records["out"].tobytes() == second.records["out"].tobytes()


def test_other_inputs_give_another_hash(pull_away, tmp_path):
    path = rig_file(tmp_path, "driver.pedal = [[0.0, 0.0], [1.5, 0.0], [1.7, 0.99]]")
    assert run(path, tmp_path / "b", 2.5).stats.hash != pull_away.stats.hash


def test_generic_and_precompiled_kernel_give_the_same_hash(pull_away, tmp_path):
    assert run(DESK, tmp_path / "b", 2.5, kernel="generic").stats.hash == pull_away.stats.hash


def test_vehicle_process_in_lockstep_gives_the_same_hash_as_the_model_in_this_process(pull_away, tmp_path):
    path = rig_file(tmp_path, PROCESS)
    other = run_rig(path, RunSpec("virtual", 2.5, tmp_path / "b"))
    assert other.stats.hash == pull_away.stats.hash
    link = other.stats.vehicles["vehicle"].link
    assert (link.mode, link.endpoint, link.exchanges) == ("lockstep", "shared memory", 2500)
    assert link.coupling.samples == 2500 and 0.0 < link.coupling.max_mps < 0.05


def test_the_configured_models_run_in_the_rigs_process_unless_told_otherwise(pull_away, tmp_path):
    other = run_rig(DESK, RunSpec("virtual", 2.5, tmp_path / "b"))
    assert other.stats.hash == pull_away.stats.hash
    link = other.stats.vehicles["vehicle"].link
    assert (link.mode, link.exchanges, link.coupling.samples) == ("in process", 2500, 2500)
    assert not list(other.out.glob("*.log")), "no process was started"


def test_replay_of_the_input_records_gives_the_same_hash(pull_away):
    plan = load_plan(pull_away.out / read_run_info(pull_away.out).rig_file)
    rig = build(plan, 2.5).rig
    data, at = read_stream(pull_away.out / "inputs").payload(), 0
    rig.begin(0)
    while at < len(data):
        at = rig.replay(data, at)
    assert rig.tick == 2500
    assert f"{rig.state_hash:016x}" == pull_away.stats.hash


def test_replay_refuses_records_that_are_cut_off_or_out_of_order(pull_away):
    plan = load_plan(DESK)
    data = read_stream(pull_away.out / "inputs").payload()
    rig = build(plan, 2.5).rig
    rig.begin(0)
    second = rig.replay(data, 0)
    with pytest.raises(ValueError, match="needed: tick 1"):
        rig.replay(data, 0)
    with pytest.raises(ValueError, match="cut off"):
        rig.replay(data[: second + 10], second)


def test_car_moves_in_first_gear_and_the_energy_balance_closes(pull_away):
    signals = read_signals(pull_away.out)
    assert signals["TCU_Status.gear_actual"][-1] == 1.0
    assert 0.5 < signals["car.v"][-1] < 5.0
    assert abs(pull_away.report.metrics["energy_residual_rel"]) < 1e-9
    assert pull_away.exit_status == 0, "what a run of 2.5 s does not reach is not judged"


def test_statistics_say_how_fast_the_run_was_and_that_nothing_was_missed(pull_away):
    stats, metrics = pull_away.stats, pull_away.report.metrics
    assert stats.clock.run_s > 0 and stats.clock.real_time_factor == pytest.approx(2.5 / stats.clock.run_s)
    assert metrics["real_time_factor"] == stats.clock.real_time_factor and metrics["missed_ratio"] == 0.0
    assert any(g.text == "missed_ratio <= 0.05" and g.passed for g in pull_away.report.gates)


def test_pressure_of_the_frame_reaches_the_model_in_si(pull_away):
    signals = read_signals(pull_away.out)
    bus = signals["TCU_Pressure_1.p_C4"]
    assert bus.max() > 2e5, "no pressure came: the test proves nothing"
    np.testing.assert_array_equal(bus, signals["input.C4.p"])
    np.testing.assert_array_equal(np.round(bus / 500.0) * 500.0, bus)  # 0.005 bar per bit


def test_sent_frames_have_their_periods_and_offsets():
    unit = Unit()
    plan = load_plan(DESK)
    parts = build(plan, 1.0)
    parts.rig.begin(0)
    seen: dict[int, list[int]] = {}
    for tick in range(60):
        parts.rig.ticks(1, tick * 1_000_000)
        for can_id, _, t_ns, _ in parts.buses[0].tx_ring.pop_all():
            assert t_ns == tick * 1_000_000
            seen.setdefault(can_id, []).append(tick)
    assert seen == {0x110: list(range(0, 60, 10)), 0x111: list(range(1, 60, 10)), 0x112: list(range(2, 60, 10))}
    assert unit.tcu is not None


def test_cycles_that_never_come_round_together_have_their_offsets_too(tmp_path):
    cycles = {"HIL_Speeds": 0.097, "HIL_Driver": 0.101, "HIL_Engine": 0.103}
    edits = [f"bus.powertrain.cycle_s.{name} = {cycle}" for name, cycle in cycles.items()]
    plan = load_plan(rig_file(tmp_path, *edits))
    parts = build(plan, 1.0)
    parts.rig.begin(0)
    seen: dict[int, list[int]] = {}
    for tick in range(1000):
        parts.rig.ticks(1, tick * 1_000_000)
        for can_id, *_ in parts.buses[0].tx_ring.pop_all():
            seen.setdefault(can_id, []).append(tick)
    assert [ticks[1] - ticks[0] for _, ticks in sorted(seen.items())] == [97, 101, 103]
    assert [ticks[0] for _, ticks in sorted(seen.items())] == [0, 1, 2]
    assert all(ticks == list(range(ticks[0], 1000, ticks[1] - ticks[0])) for ticks in seen.values())


def test_a_driver_table_holds_before_its_first_point_and_steps_at_two_points_of_one_time(tmp_path):
    points = [[0.05, 0.6], [0.1, 0.2], [0.1, 0.8], [0.2, 0.4]]
    plan = load_plan(rig_file(tmp_path, f"driver.pedal = {points}"))
    parts = build(plan, 1.0)
    parts.rig.begin(0)
    pedal = []
    for tick in range(250):
        parts.rig.ticks(1, tick * 1_000_000)
        pedal.append(parts.rig.value(plan.table.slot("driver.pedal")))
    t = np.arange(250) * 1e-3
    wanted = np.where(t < 0.1, np.interp(t, [0.05, 0.1], [0.6, 0.2]), np.interp(t, [0.1, 0.2], [0.8, 0.4]))
    np.testing.assert_allclose(pedal, wanted, rtol=1e-12)


def test_mode_log_holds_every_change_and_ends_where_the_signals_end(pull_away):
    changes = read_modes(pull_away.out / "modes.csv")
    signals = read_signals(pull_away.out)
    last = {c.element: c.mode for c in changes}
    assert len(last) >= 3
    for element, mode in last.items():
        assert signals[f"{element}.mode"][-1] == mode


def test_frames_have_the_time_of_day_of_a_run_that_simulates_from_its_start_on(pull_away):
    bus, started = read_stream(pull_away.out / "bus"), datetime.fromisoformat(read_run_info(pull_away.out).started)
    times = (unpack_frames(bus)["t_ns"] + bus.header["epoch_ns"]) * 1e-9 - started.timestamp()
    assert 0.0 <= times.min() < 0.05 and 2.4 < times.max() <= 2.5


def test_run_directory_holds_all_inputs_and_the_end(pull_away):
    info = read_run_info(pull_away.out)
    assert info.state == "ended" and info.clock == "virtual"
    names = {p.name for p in (pull_away.out / "config").rglob("*") if p.is_file()}
    assert {
        "desk_4hp22.toml",
        "car_4hp22_rig.toml",
        "drive_4hp22.toml",
        "zf_4hp22.toml",
        "tcu_4hp22.dbc",
        "soft_4hp22.toml",
        "bmw_528i_e28.toml",
        "bmw_m30b28.csv",
        "tc_4hp22.csv",
    } <= names
    assert (pull_away.out / "report.json").is_file() and (pull_away.out / "junit.xml").is_file()


def test_nothing_is_sent_before_arming():
    plan = load_plan(DESK)
    parts = build(plan, 10.0)
    thread = threading.Thread(target=parts.rig.run)
    thread.start()
    parts.buses[0].rx_ring.push(0x210, bytes(8))
    wait_for(lambda: parts.rig.heartbeat >= 30 and parts.rig.idle_frames)
    parts.rig.stop()
    thread.join(PATIENCE_S)
    assert parts.rig.heartbeat >= 30 and parts.rig.idle_frames == 1
    assert parts.rig.tick == 0 and len(parts.buses[0].tx_ring) == 0 and len(parts.samples) == 0


def test_run_directory_that_is_not_empty_is_refused(tmp_path):
    (tmp_path / "x").write_text("precious")
    with pytest.raises(Exception, match="nothing is overwritten"):
        run(DESK, tmp_path, 0.1)
    assert (tmp_path / "x").read_text() == "precious"
