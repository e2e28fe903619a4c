"""A carrier whose motion comes over the vehicle link and whose moments go back, on both clocks; ready rigs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zmq
from control_help import Running, SlowCar
from rig_help import CONFIGS
from waiting import wait_for

from torqueloop.core.describe.errors import ConfigError
from torqueloop.cython_kernels.rings.ring import LatestSlot
from torqueloop.hil.link.carriers import Carriers
from torqueloop.hil.link.latest_value import RigLink
from torqueloop.hil.link.messages import RIG_SLOT, VEHICLE_SLOT, SchemaError, StateMessage, StepMessage, decode, encode
from torqueloop.hil.rig.online.checkpoint import CheckpointError, read, write
from torqueloop.hil.rig.resolve.plan import load_plan
from torqueloop.hil.rig.run.live_run import StartError
from torqueloop.hil.rig.run.replay import replay
from torqueloop.hil.rig.run.session import RunSpec, run_rig
from torqueloop.hil.runs.recorded_run import RecordedRun, read_run
from torqueloop.hil.vehicle.carrier import TurningBodies, TurningBody
from torqueloop.hil.vehicle.model import VehicleModel
from torqueloop.hil.vehicle.vehicle_tables import CarrierBody, load_vehicle_config

#: of the platform with the rotor at rest on it, about z; of the rotor; torque between them
I_ALL, J, TAU = 2.0, 0.25, 3.0

POWERTRAIN = f"""
name = "flywheel on a platform"
connections = [
  ["motor.flange", "rotor.flange_a"],
  ["motor.support", "mount.flange_b"],
  ["platform.frame_b", "rotor.frame_a", "mount.frame_a"],
  ["car.flange_b", "road.flange"],
]
[components.motor]
kind = "Torque"
[components.platform]
kind = "MovingCarrier"
use_z = true
[components.rotor]
kind = "Rotor1D"
J_kgm2 = {J}
n_x = 0
n_z = 1
[components.mount]
kind = "Mounting1D"
n_x = 0
n_z = 1
[components.car]
kind = "Mass"
m_kg = 1500
[components.road]
kind = "RoadLoad"
"""

RIG = f"""
[rig]
name = "platform"
duration_s = 0.4
[plant]
powertrain = "flywheel.toml"
[vehicle]
start = "free.toml"
carriers = ["platform"]
age_limit_s = 0.2
[inputs]
"motor.tau" = {{ value = {TAU} }}
"road.F" = "vehicle.F"
"road.F_hold" = "vehicle.F_hold"
[driver]
brake = [[0.0, 1.0]]
[record]
signals = ["rotor.w", "input.platform.w_z", "input.platform.z_z", "platform.t_z", "vehicle.t"]
"""
#: on the real clock the answers are late by as much as the computer is; what they say belongs to their own time
LATE = ("age_limit_s = 0.2", "age_limit_s = 60.0")
#: speed of the platform after a second, and of the rotor on it
PLATFORM, ROTOR = -TAU / (I_ALL - J), TAU / J + TAU / (I_ALL - J)


@pytest.fixture
def rig(tmp_path: Path) -> Path:
    (tmp_path / "flywheel.toml").write_text(POWERTRAIN)
    car = (CONFIGS / "vehicles" / "bmw_528i_e28.toml").read_text(encoding="utf-8")
    (tmp_path / "free.toml").write_text(f"{car}\n[carrier.platform]\nI_kgm2 = [{I_ALL}, {I_ALL}, {I_ALL}]\n")
    (tmp_path / "rig.toml").write_text(RIG)
    return tmp_path / "rig.toml"


def first_answer(run: RecordedRun) -> float:
    """The time that the first answer belongs to which knows of a moment [s]: the moment is taken as rising until it."""
    told = run["vehicle.t"]
    return float(told[told > 0.0][0])


def turned_against_each_other(run_dir: Path, within: float) -> None:
    """Free of each other: the platform's speed and the rotor's on it, from the torque between them; within this share
    of what they have at the end, and what is lost until the platform has been told a moment twice."""
    run = read_run(run_dir)
    t, at = run.t[-1], run["vehicle.t"][-1]
    lost = abs(PLATFORM) * first_answer(run)
    assert run["input.platform.w_z"][-1] == pytest.approx(PLATFORM * at, abs=within * abs(PLATFORM) * t + lost)
    assert run["rotor.w"][-1] == pytest.approx(ROTOR * t, abs=within * ROTOR * t + lost)
    assert replay(run_dir).hash_equal


def test_platform_and_flywheel_over_the_link_in_lockstep(rig: Path, tmp_path: Path) -> None:
    """In the rig's process and in one of its own: the same bits."""
    hashes = []
    for where in ("true", "false"):
        rig.write_text(RIG.replace("[vehicle]", f"[vehicle]\nin_process = {where}"))
        out = tmp_path / where
        result = run_rig(rig, RunSpec("virtual", None, out))
        assert result.exit_status == 0
        turned_against_each_other(out, 5e-3)
        hashes.append(result.stats.hash)
    assert hashes[0] == hashes[1]


def test_platform_and_flywheel_over_the_link_on_the_real_clock(rig: Path, tmp_path: Path) -> None:
    rig.write_text(RIG.replace(*LATE))
    result = run_rig(rig, RunSpec("real", None, tmp_path / "run"))
    assert result.stats is not None and not result.stats.safe_state.latched
    turned_against_each_other(tmp_path / "run", 0.1)


#: a shaft with two joints from the world to the platform, which turns under its torque
SHAFT = """
[components.world]
kind = "World"
[components.front]
kind = "ShaftBearing"
r_z_m = -0.5
n_x = 0
n_z = 1
[components.rear]
kind = "ShaftBearing"
n_x = 0.1
n_z = 1
[components.drive]
kind = "Inertia"
J_kgm2 = 0.1
w0_radps = 20
[components.shaft]
kind = "JointShaft"
c_Nm_per_rad = 2000
d_Nms_per_rad = 2
[components.driven]
kind = "Inertia"
J_kgm2 = 0.1
w0_radps = 20
"""


def with_a_shaft(folder: Path) -> None:
    """The rig's platform with attitude, a shaft from the world to it."""
    power = POWERTRAIN.replace("use_z = true", "use_z = true\nattitude = true\nz0_m = 0.3").replace(
        '["car.flange_b"', '["drive.flange_b", "front.flange", "shaft.flange_a"],\n  '
        '["shaft.flange_b", "rear.flange", "driven.flange_a"],\n  '
        '["world.frame_b", "front.frame_a"],\n  ["car.flange_b"'
    ).replace('"mount.frame_a"]', '"mount.frame_a", "rear.frame_a"]')  # fmt: skip
    (folder / "flywheel.toml").write_text(power + SHAFT)
    with (folder / "free.toml").open("a") as file:
        file.write("at_m = [0.0, 0.0, 0.3]\n")


@pytest.mark.parametrize("clock", ["virtual", "real"])
def test_attitude_and_place_come_and_forces_go_back(rig: Path, tmp_path: Path, clock: str) -> None:
    """A shaft between the world and the platform follows the platform's attitude, on both clocks; it replays."""
    with_a_shaft(tmp_path)
    names = '"platform.t_x", "platform.f_x", "platform.f_y", "input.platform.q0", "input.platform.q3", "shaft.twist"'
    text = RIG.replace("signals = [", f"signals = [{names}, ")
    rig.write_text(text if clock == "virtual" else text.replace(*LATE))
    result = run_rig(rig, RunSpec(clock, None, tmp_path / "run"))
    assert result.stats is not None and not result.stats.safe_state.latched
    run = read_run(tmp_path / "run")
    turned = 2.0 * np.arctan2(run["input.platform.q3"], run["input.platform.q0"])
    at = run["vehicle.t"][-1]
    lost = abs(PLATFORM) * first_answer(run) * at
    assert turned[0] == 0.0 and turned[-1] == pytest.approx(0.5 * PLATFORM * at**2, abs=0.03 + lost)
    if clock == "virtual":
        assert turned[-1] == pytest.approx(np.sum(run["input.platform.w_z"]) * 1e-3, rel=0.02)
    # what the platform has turned, the driven end has not: the shaft does not twist by it
    assert np.abs(run["shaft.twist"]).max() < 0.02
    assert np.abs(run["platform.f_x"]).max() > 0.01 and np.abs(run["platform.t_x"]).max() > 0.01
    assert replay(tmp_path / "run").hash_equal


def cut_bodies(path: Path, keep: int) -> Path:
    """The checkpoint with the first numbers only of the bodies of the vehicle."""
    checkpoint = read(path)
    bodies = checkpoint.participants["vehicle"]["carriers"]
    assert [len(numbers) for numbers in bodies.values()] == [13]
    checkpoint.participants["vehicle"]["carriers"] = {name: numbers[:keep] for name, numbers in bodies.items() if keep}
    write(path.with_name(f"cut{keep}.tlc"), checkpoint)
    return path.with_name(f"cut{keep}.tlc")


@pytest.mark.parametrize(("keep", "posed", "words"), [
    (9, ("b",), ["'b'", "quaternion is missing", "take a new checkpoint"]),
    (5, (), ["'b'", "5 numbers", "13", "take a new checkpoint"]),
    (0, (), ["no carrier 'b'", "allowed: a", "take a new checkpoint"]),
])  # fmt: skip
def test_a_saved_state_without_attitude_is_refused_where_one_is_asked(keep: int, posed: Any, words: list[str]) -> None:
    bodies = TurningBodies({name: CarrierBody(I_kgm2=[1.0, 1.0, 1.0]) for name in "ab"}, 1e-3)
    bodies.load({"a": [0.1 * k for k in range(9)], "b": [0.5] * 9 + [0.0, 1.0, 0.0, 0.0]}, {"b"})
    kept = bodies.save()
    assert kept["a"][9:] == [1.0, 0.0, 0.0, 0.0] and kept["b"][9:] == [0.0, 1.0, 0.0, 0.0]
    saved = {"a": [0.0] * 13} | ({"b": [0.0] * keep} if keep else {})
    with pytest.raises(ConfigError) as error:
        bodies.load(saved, posed)
    assert all(w in str(error.value) for w in words)
    assert bodies.save() == kept, "a state that is refused changes nothing"


@pytest.mark.proof
@pytest.mark.parametrize("asked", [False, True])
def test_a_checkpoint_from_before_there_were_attitudes(rig: Path, tmp_path: Path, asked: bool) -> None:
    """Angles, speeds and accelerations are enough where the rig asks for no attitude; else it says what is missing."""
    if asked:
        with_a_shaft(tmp_path)
    car = SlowCar(before=(200,))
    car.model = VehicleModel(load_vehicle_config(tmp_path / "free.toml"))
    going = Running(rig, tmp_path / "run", 0.3, vehicle=car, ecus=None)
    with going.client() as client:
        client.checkpoint("here", at=200)
    taken = going.join()
    assert taken.stats is not None

    def go_on(keep: int) -> int:
        path = cut_bodies(taken.out / "control" / "here.tlc", keep)
        car.before = 0
        again = run_rig(rig, RunSpec("virtual", 0.1, tmp_path / f"on{keep}", vehicle=car, start_from=path))
        assert again.stats is not None
        return again.stats.hash

    for keep, words in ((9, "attitude"), (5, "5 numbers"), (0, "no carrier 'platform'")):
        if keep == 9 and not asked:
            assert go_on(9) == taken.stats.hash
            continue
        with pytest.raises(CheckpointError) as error:
            go_on(keep)
        assert all(w in str(error.value) for w in (f"cut{keep}.tlc", "platform", words, "take a new checkpoint"))


def test_an_attitude_that_is_none_is_refused() -> None:
    carriers = Carriers(("a", "b"), frozenset("b"))
    pose = [1.0, 0.0, 0.0, 0.0, 5.0, 6.0, 7.0]
    assert carriers.motion({"a": [1.0] * 6, "b": [2.0] * 9 + pose}) == [1.0] * 6 + [0.0] * 3 + [2.0] * 9 + pose
    assert carriers.moments(range(9)) == {"a": [0.0, 1.0, 2.0], "b": [3.0, 4.0, 5.0, 6.0, 7.0, 8.0]}
    assert carriers.unaccelerated([3.0] * 9 + [2.0] * 9 + pose)[9:] == [2.0] * 3 + [0.0] * 6 + pose
    assert (carriers.n_motion, carriers.n_moment) == (25, 9)
    for numbers, text in (([2.0] * 9, "9 numbers, allowed: 16 numbers"),
                          ([2.0] * 9 + [1.01, *pose[1:]], "quaternion .* allowed: length 1")):  # fmt: skip
        with pytest.raises(SchemaError, match=text) as error:
            carriers.motion({"a": [1.0] * 6, "b": numbers})
        assert error.value.reason == "range"


def test_a_state_is_refused_that_moves_other_carriers_or_by_other_numbers() -> None:
    carriers = Carriers(("a", "b"))
    assert carriers.motion({"b": [7.0] * 9, "a": [1.0] * 6}) == [1.0] * 6 + [0.0] * 3 + [7.0] * 9
    assert carriers.moments(range(6)) == {"a": [0.0, 1.0, 2.0], "b": [3.0, 4.0, 5.0]}
    for told, reason, text in (
        ({"a": [0.0] * 6}, "keys", "no b"),
        ({"a": [0.0] * 6, "b": [0.0] * 6, "c": [0.0] * 6}, "keys", "unknown c"),
        ({"a": [0.0] * 6, "b": [0.0] * 7}, "range", "7 numbers, allowed: 6 or 9"),
        ({"a": [0.0] * 6, "b": [float("nan")] * 6}, "not_finite", "finite"),
    ):
        with pytest.raises(SchemaError, match=text) as error:
            carriers.motion(told)
        assert error.value.reason == reason


def test_the_moments_cross_the_wire() -> None:
    step = StepMessage(3, 0.1, 0.0, 0.0, 0.0, 0.0, 0.0, {"a": [1.0, -2.0, 3.5]})
    assert decode(encode(step)) == step
    assert b"carrier" not in encode(StepMessage(3, 0.1, 0.0, 0.0, 0.0, 0.0, 0.0)), "a rig without carriers is as before"


def test_a_carrier_that_is_not_heard_turns_on_unaccelerated() -> None:
    carriers = Carriers(("a",))
    told, state, motion = LatestSlot(len(RIG_SLOT) + 3), LatestSlot(len(VEHICLE_SLOT)), LatestSlot(9)
    link = RigLink("tcp://127.0.0.1:0", told, state, carriers=carriers, carrier_slot=motion, age_limit_s=0.05)
    link.start()
    peer = zmq.Context.instance().socket(zmq.PAIR)
    try:
        peer.connect(link.endpoint)
        numbers = iter(range(1, 10_000))
        wait_for(lambda: told.write([float(next(numbers)), *[0.0] * 6, 1.0, 2.0, 3.0]) or peer.poll(5))
        step = decode(peer.recv())
        assert isinstance(step, StepMessage) and step.carrier == {"a": [1.0, 2.0, 3.0]}
        moved = [0.1, 0.2, 0.3, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
        # one that lacks the carrier is counted and goes nowhere
        peer.send(encode(StateMessage(step.step, 1, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)))
        wait_for(lambda: link.stats().rejected["keys"] == 1)
        assert motion.version == 0 and state.version == 0
        peer.send(encode(StateMessage(step.step, 2, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, {"a": moved})))
        wait_for(lambda: motion.version == 1)
        assert list(motion.read()[2]) == moved
        wait_for(lambda: motion.version == 2)
        assert list(motion.read()[2]) == [0.1, 0.2, 0.3] + [0.0] * 6 and link.coasted == 1
    finally:
        link.stop()
        peer.close(linger=0)


@pytest.mark.parametrize(("old", "new", "words"), [
    ('["platform"]', '["plattform"]', ["[vehicle]", "carriers", "'plattform'", "platform"]),
    ('["platform"]', '["rotor"]', ["[vehicle]", "MovingCarrier with use_z", "platform"]),
    ('["platform"]', '["platform", "platform"]', ["[vehicle]", "carriers", "twice"]),
    ('["platform"]', "[]", ["[inputs]", "platform.w_x"]),
])  # fmt: skip
def test_a_carrier_that_is_none_is_named(rig: Path, old: str, new: str, words: list[str]) -> None:
    rig.write_text(RIG.replace(old, new))
    with pytest.raises(ConfigError) as error:
        load_plan(rig)
    assert all(word in str(error.value) for word in words), str(error.value)


def test_rig_and_vehicle_file_must_agree_on_the_carriers(rig: Path, tmp_path: Path) -> None:
    text = (tmp_path / "free.toml").read_text()
    (tmp_path / "free.toml").write_text(text.replace("carrier.platform", "carrier.body"))
    with pytest.raises((ConfigError, StartError), match="body, those of the rig platform"):
        run_rig(rig, RunSpec("virtual", 0.01, tmp_path / "run"))
    (tmp_path / "free.toml").write_text(text + "yaw_radps = [[0.0, 0.0], [1.0, 0.2], [1.0, 0.4]]\n")
    with pytest.raises(ConfigError) as error:
        load_vehicle_config(tmp_path / "free.toml")
    assert all(w in str(error.value) for w in ("free.toml", "carrier.platform", "yaw_radps", "do not rise"))


def test_a_turning_body_against_an_independent_integration() -> None:
    """Euler's equations with springs, a moment that changes, the attitude as a matrix, R' = R [w]; SciPy at 1e-12."""
    from scipy.integrate import solve_ivp
    from scipy.spatial.transform import Rotation

    inertia, c, d = np.array([3.0, 5.0, 7.0]), np.array([200.0, 300.0, 0.0]), np.array([2.0, 1.0, 0.5])
    first, last = np.array([4.0, -3.0, 2.0]), np.array([-2.0, 6.0, 5.0])

    def slope(t: float, y: np.ndarray) -> np.ndarray:
        theta, w, R = y[:3], y[3:6], y[6:].reshape(3, 3)
        moment = first + t / 0.8 * (last - first)
        # a row of R [w] is that row of R times w
        return np.r_[w, (moment - np.cross(w, inertia * w) - c * theta - d * w) / inertia, np.cross(R, w).ravel()]

    start = np.r_[0, 0, 0, 0.3, -0.2, 0.9, np.eye(3).ravel()]
    wanted = solve_ivp(slope, (0.0, 0.8), start, "DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    errors = []
    for n in (100, 200):
        body = TurningBody(CarrierBody(I_kgm2=list(inertia), c_Nm_per_rad=list(c), d_Nms_per_rad=list(d)))
        body.w = [0.3, -0.2, 0.9]
        body.advance(0.0, 0.8, n, first, last)
        told = Rotation.from_quat(np.roll(body.motion(posed=True)[9:13], -1)).as_matrix()
        errors.append(float(np.abs(np.r_[body.theta, body.w, told.ravel()] - wanted).max()))
    assert errors[1] < 1e-6 and 3.7 < np.log2(errors[0] / errors[1]) < 4.3


def test_the_block_on_its_mounts_rolls_as_their_stiffness_says(tmp_path: Path) -> None:
    """The ready rig while the engine pulls away: roll times stiffness is the moment; it replays."""
    result = run_rig(CONFIGS / "rigs" / "desk_4hp22_mounts.toml", RunSpec("virtual", 3.0, tmp_path / "run"))
    assert result.stats is not None and not result.stats.safe_state.latched
    run = read_run(tmp_path / "run")
    roll = 2.0 * np.arctan2(run["block.q1"], run["block.q0"])
    # about x: left and right at y = 0.28 m, z = -0.1 m, rear at z = -0.15 m; the block is not held at its mass centre,
    # so it moves to the side as well: of c_y z^2 counts what the common displacement leaves
    cy, z = np.array([150e3, 150e3, 120e3]), np.array([-0.1, -0.1, -0.15])
    stiffness = 2 * 300e3 * 0.28**2 + float(cy @ z**2 - (cy @ z) ** 2 / cy.sum())
    slow = run.t > 2.6
    assert np.abs(run["driveline.tau"][slow]).max() > 200.0
    assert np.abs(roll * stiffness - run["driveline.tau"])[slow].max() < 0.05 * np.abs(run["driveline.tau"][slow]).max()
    assert replay(tmp_path / "run").passed


def test_the_body_that_the_vehicle_moves_pitches_under_the_axle(tmp_path: Path) -> None:
    """The ready rig with propeller shaft and body: moments go out, motions come back, and it replays."""
    result = run_rig(CONFIGS / "rigs" / "desk_4hp22_body.toml", RunSpec("virtual", 3.0, tmp_path / "run"))
    assert result.stats is not None and not result.stats.safe_state.latched
    run = read_run(tmp_path / "run")
    pitch = np.cumsum(run["vehicle.body.w_y"]) * 1e-3
    # the crown wheel's torque on the body, and little more: nothing yaws yet
    assert run["body.t_y"][-1] > 500.0 and run["body.t_y"][-1] == pytest.approx(-run["crown.tau_b"][-1], rel=0.05)
    assert pitch[-1] == pytest.approx(run["body.t_y"][-1] / 153e3, rel=0.25)
    assert replay(tmp_path / "run").passed


def test_the_shaft_follows_an_axle_that_winds_up(tmp_path: Path) -> None:
    """The ready rig with an axle: attitudes come from the vehicle, forces and moments go back; it replays."""
    result = run_rig(CONFIGS / "rigs" / "desk_4hp22_axle.toml", RunSpec("virtual", 3.0, tmp_path / "run"))
    assert result.stats is not None and not result.stats.safe_state.latched
    run = read_run(tmp_path / "run")
    wound = 2.0 * np.arcsin(run["vehicle.axle.q2"])
    assert run["axle.t_y"][-1] > 500.0 and wound[-1] == pytest.approx(run["axle.t_y"][-1] / 35e3, rel=0.1)
    # joint b is bent by as much less, from 3 deg, and moves, 0.2 m before the axle
    steep = np.arctan2(0.079 - 0.2 * np.sin(wound[-1]), 1.5)
    assert run["propeller.bend_b"][-1] == pytest.approx(abs(steep - wound[-1]), abs=2e-4)
    assert np.abs(run["body.f_z"] + run["axle.f_z"]).max() < 0.1 * np.abs(run["axle.f_z"]).max()
    assert replay(tmp_path / "run").passed
