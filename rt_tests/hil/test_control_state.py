"""Parameters at run time, checkpoints: the rig goes on exactly as it would have."""

import math
import time
from types import SimpleNamespace

import numpy as np
import pytest
from control_help import Running, SlowCar
from rig_help import DESK, UNHURRIED, Car, Unit, rig_file, run

from torqueloop.cython_kernels.kernel.kernel import KernelState
from torqueloop.cython_kernels.tick.control import Image
from torqueloop.hil.control.client import ControlError
from torqueloop.hil.record.run_data import read_signals
from torqueloop.hil.results.files import read_run_info
from torqueloop.hil.rig.assemble.parts import build
from torqueloop.hil.rig.online.checkpoint import CheckpointError, read
from torqueloop.hil.rig.online.parameters import Parameters
from torqueloop.hil.rig.online.restore import Checkpoints
from torqueloop.hil.rig.resolve.plan import load_plan
from torqueloop.hil.rig.run.replay import replay
from torqueloop.hil.rig.run.session import RunSpec, run_rig


def test_a_change_of_inertia_goes_the_way_of_a_simulation_switched_by_hand():
    """Switched by hand: the state is copied into a state of the new model, accelerations and modes are found anew."""
    plan = load_plan(DESK)
    parts = build(plan, 10.0)
    pedal, p_c4 = plan.table.slot("driver.pedal"), plan.table.slot("TCU_Pressure_1.p_C4")
    first = plan.in_slot
    inputs = range(first, first + len(plan.compiled.input_names))
    by_hand = KernelState(parts.model)
    model = parts.model
    prepared = Parameters(plan, "auto").prepare({"turbine.J": 0.09, "car.m": 1900.0})
    parts.rig.begin(0)
    parts.control.post([(pedal, 1, 0.6), (p_c4, 1, 4e5)])
    speeds = []
    for tick in range(900):
        if tick == 300:
            parts.control.post([], model=prepared.model, state=prepared.state, gains=prepared.gains)
        parts.rig.ticks(1, tick * 1_000_000)
        if tick == 300:
            assert parts.control.free and parts.control.answer() == (300, True)
            other = KernelState(prepared.model)
            other.restore(by_hand)
            other.u = by_hand.u
            by_hand, model = other, prepared.model
        values = np.array([[parts.rig.value(slot) for slot in inputs]])
        model.run(by_hand, values)
        np.testing.assert_array_equal(
            model.outputs(by_hand), parts.rig.values(list(range(plan.out_slot, plan.out_slot + model.sizes["outputs"])))
        )
        speeds.append(parts.rig.value(plan.table.slot("turbine.w")))
    assert max(speeds) > 50.0, "nothing turned: the test proves nothing"
    # the speed goes on without a jump: its change in the tick of the switch is like those around it
    steps = np.abs(np.diff(speeds[290:312]))
    assert steps[10] < 3 * np.median(steps) + 1e-9


@pytest.mark.proof
def test_parameters_over_the_channel_and_their_replay(tmp_path):
    going = Running(DESK, tmp_path / "run", 3.0)
    with going.client() as client:
        mass = client["car.m"]
        for values, text in (
            ({"car.m": -1.0}, "allowed: >= 0 kg"),
            ({"carr.m": 1.0}, "did you mean 'car.m'"),
            ({"final_drive.ratio": 2.0}, "final_drive.ratio"),
            ({"car.m": 1500.0, "HIL_Driver.T_oil": 1e9}, "allowed"),
        ):
            with pytest.raises(ControlError, match=text):
                client.set(values)
        assert client["car.m"] == mass
        first = client.set({"car.m": 2.0 * mass, "turbine.J": 0.05, "HIL_Driver.T_oil": 350.0})
        second = client.set({"car.m": mass})
        assert client.get(["car.m", "turbine.J"]) == {"car.m": mass, "turbine.J": 0.05}
        assert client.status()["parameters"] == {"car.m": mass, "turbine.J": 0.05}
    result = going.join()
    assert first < second
    assert result.stats.hash != run(DESK, tmp_path / "plain", 3.0).stats.hash
    signals = read_signals(result.out)
    assert np.abs(np.diff(signals["car.v"])).max() < 0.02, "the car's speed jumps"
    # the impulse the vehicle model is told is that of the mass of each tick
    m = np.where((signals.tick >= first) & (signals.tick < second), 2.0 * mass, mass)[1:]
    force = signals["road.F"] + signals["road.F_friction"]
    impulse = m * np.diff(signals["car.v"]) - 1e-3 * 0.5 * (force[1:] + force[:-1])
    np.testing.assert_allclose(np.diff(signals["link.I_wheel"]), impulse, rtol=0, atol=1e-9 * mass)
    assert result.stats.energy.supplied["changes of parameters"] != 0.0
    assert abs(result.report.metrics["energy_residual_rel"]) < 1e-9
    again = replay(result.out)
    assert again.passed and again.hash_equal and again.ticks == 3000, again


def test_tables_have_a_gain():
    parameters = Parameters(load_plan(DESK), "auto")
    name = next(n for n in parameters.current if n.startswith("table.") and n.endswith(".gain"))
    prepared = parameters.prepare({name: 0.5})
    assert prepared.compiled.digest() != load_plan(DESK).compiled.digest()
    assert parameters.prepare({name: 1.0}).compiled.digest() == load_plan(DESK).compiled.digest()


@pytest.fixture(scope="module")
def taken(tmp_path_factory):
    """2.5 s with a checkpoint at tick 1700, in the middle of the first shift into gear, and the run without one."""
    folder = tmp_path_factory.mktemp("checkpoint")
    going = Running(DESK, folder / "run", 2.5, vehicle=SlowCar(before=(1700,)))
    with going.client() as client:
        client.override({"driver.brake_switch": 1.0})
        answer = client.checkpoint("here", at=1700)
        assert answer == {"name": "here", "file": "control/here.tlc", "tick": 1700}
    return going.join()


def test_taking_a_checkpoint_changes_nothing(taken):
    again = replay(taken.out)
    assert again.passed and again.hash_equal


def test_the_first_message_to_the_vehicle_has_the_values_of_the_checkpoint_in_their_order():
    """Number of the tick, time, force, impulse, speed, distance, brake, as the vehicle link sends them; what
    is held has its held value."""
    plan = load_plan(DESK)
    parts = build(plan, 1.0)
    values = dict(zip(("rig.time", "link.F_wheel", "link.I_wheel", "car.v", "car.s", "driver.brake"),
                      (0.7, 1200.0, 24.0, 13.0, 90.0, 0.25), strict=True))  # fmt: skip
    at = {plan.table.slot(name): value for name, value in values.items()}
    image = SimpleNamespace(tick=700, signal=lambda slot: at[slot], held=lambda: {plan.table.slot("driver.brake"): 0.5})
    Checkpoints(SimpleNamespace(plan=plan, parts=parts), real=False)._tell_vehicle(image)
    _, _, told = parts.vehicle_out.read()
    assert list(told) == [700.0, 0.7, 1200.0, 24.0, 13.0, 90.0, 0.5]


def test_no_age_is_counted_from_before_a_checkpoint_that_is_restored():
    """A value of the vehicle that came 5 s before, and is read after it, is as old as the restoring."""
    second, ms = 10**9, 10**6
    parts = build(load_plan(DESK), 60.0)
    rig, image = parts.rig, Image(parts.rig.image_sizes())
    rig.begin(0)
    parts.vehicle_in.write([0.0] * parts.vehicle_in.n, 0)
    parts.control.post([], -1, target=image)
    rig.ticks(1, 0)
    assert parts.control.answer()[1]
    parts.control.post([], -1, reference=1, source=image)
    rig.ticks(1, 6 * second)
    parts.control.answer()
    parts.vehicle_in.write([0.0] * parts.vehicle_in.n, second)
    rig.ticks(1, 6 * second + ms)
    assert rig.counters()["vehicle_age_max_ms"] == 1.0 and not rig.safe_latched


@pytest.mark.parametrize("kernel", ["auto", "generic"])
def test_a_run_from_a_checkpoint_ends_in_the_same_state(taken, tmp_path, kernel):
    result = run_rig(
        DESK,
        RunSpec(
            "virtual",
            0.8,
            tmp_path / "run",
            vehicle=Car(),
            ecus={"tcu": Unit()},
            kernel=kernel,
            start_from=taken.out / "control" / "here.tlc",
        ),
    )
    assert result.stats.clock.ticks == 800
    assert result.stats.hash == taken.stats.hash
    assert read_run_info(result.out).started_from.tick == 1700
    before, after = read_signals(taken.out), read_signals(result.out)
    assert before.records["out"][1700:].tobytes() == after.records["out"].tobytes()
    assert math.isclose(after["rig.time"][-1], 2.5)
    again = replay(result.out)
    assert again.passed and again.hash_equal, again


@pytest.mark.proof
def test_a_run_that_goes_back_goes_the_same_way_again(tmp_path):
    """Restored in the middle: ticks 600 .. 1199 come twice, and both times with the same bits."""
    going = Running(DESK, tmp_path / "run", 2.4, vehicle=SlowCar(before=(600, 1200)))
    with going.client() as client:
        client.checkpoint("a", at=600)
        with pytest.raises(ControlError, match="there are: a"):
            client.restore("b")
        with pytest.raises(ControlError, match="allowed: up to 64"):
            client.restore("../../etc/passwd")
        assert client.restore("a", at=1200) == {"tick": 600, "participants": {"vehicle": True, "tcu": True}}
    result = going.join()
    values = read_signals(result.out).records["out"]
    assert len(values) == 2400
    assert values[600:1200].tobytes() == values[1200:1800].tobytes()
    plain = read_signals(run(DESK, tmp_path / "plain", 1.8).out).records["out"]
    assert values[1200:].tobytes() == plain[600:].tobytes()
    again = replay(result.out)
    assert again.passed and again.hash_equal, again


@pytest.mark.proof
def test_parameters_go_back_with_a_checkpoint(tmp_path):
    going = Running(DESK, tmp_path / "run", 2.0, vehicle=SlowCar(before=(400, 500, 800)))
    with going.client() as client:
        mass = client["car.m"]
        client.checkpoint("light", at=400)
        client.set({"car.m": 3.0 * mass}, at=500)
        client.restore("light", at=800)
        assert client["car.m"] == mass
    result = going.join()
    plain = run(DESK, tmp_path / "plain", 1.6)
    assert result.stats.hash == plain.stats.hash
    assert replay(result.out).passed


def test_files_of_another_rig_or_model_or_damaged_ones_are_refused(taken, tmp_path):
    good = taken.out / "control" / "here.tlc"
    data = good.read_bytes()
    for name, content, text in (
        ("cut", data[:-5], "checksum"),
        ("bit", data[:900] + bytes([data[900] ^ 1]) + data[901:], "checksum"),
        ("old", data[:7] + b"0" + data[8:], "version 0"),
        ("text", b"hello", "not a checkpoint"),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match=text):
            read(path)
    for name in ("same", "other", "more"):
        (tmp_path / f"rig_{name}").mkdir()
    same = rig_file(tmp_path / "rig_same", "rig.duration_s = 24.0")
    other = rig_file(tmp_path / "rig_other", 'rig.name = "other"')
    more = rig_file(tmp_path / "rig_more", "driver.more = 1.0")
    options = {"progress": False, "html": False, "vehicle": Car(), "ecus": {"tcu": Unit()}, "start_from": good}
    for k, (path, text) in enumerate(((other, "of rig 'desk_4hp22'"), (more, "are not those of this rig file"))):
        with pytest.raises(CheckpointError, match=text):
            run_rig(path, RunSpec("virtual", 0.1, tmp_path / f"run{k}", **options))
    assert run_rig(same, RunSpec("virtual", 0.1, tmp_path / "same", **options)).stats.clock.ticks == 100


@pytest.mark.proof
@pytest.mark.usefixtures("multicast")
def test_checkpoint_and_restore_on_the_real_clock_replay_to_the_same_bits(tmp_path):
    path = rig_file(tmp_path, *UNHURRIED, own_bus=True)
    going = Running(path, tmp_path / "run", 6.0, clock="real")
    with going.client() as client:
        tick = client.checkpoint("now")["tick"]
        client.set({"turbine.J": 0.06})
        while client.status()["ticks"] < tick + 300:
            time.sleep(0.02)
        answer = client.restore("now")
        assert answer == {"tick": tick, "participants": {}} and client["turbine.J"] != 0.06
    result = going.join()
    assert result.stats.clock.ticks == 6000 and not result.stats.safe_state.latched
    again = replay(result.out)
    assert again.passed and again.hash_equal, again
