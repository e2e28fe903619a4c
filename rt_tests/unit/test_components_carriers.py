"""Drivelines on carriers whose motion is given: rotors, moments against the change of spin in space; wrong frames."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from core_examples import zf_4hp22, zf_6hp26

from torqueloop.core.analyse.catalogue import example
from torqueloop.core.components import (
    KINDS,
    AbsoluteSpeedSensor,
    BevelGear1D,
    Component,
    Inertia,
    MountedDriveline,
    Mounting1D,
    MovingCarrier,
    Rotor1D,
    Torque,
    World,
)
from torqueloop.core.components.files import component_from_config
from torqueloop.core.describe.builder import Builder
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import (
    CompileError,
    ConfigError,
    DomainError,
    FloatingFlangeError,
    NoReferenceError,
    OverconstrainedError,
    RangeError,
    UnknownNameError,
)
from torqueloop.core.describe.flange import ROTATIONAL
from torqueloop.core.describe.parts import Parts, port_groups
from torqueloop.core.signals import Function, Ramp, Sine, Step
from torqueloop.core.simulate.offline import Simulation
from torqueloop.core.simulate.results import Result

#: of the carrier, rad/s: polynomials of the first degree are integrated without error
RATES = {"w_x": (0.3, 2.0), "w_y": (-0.7, 1.5), "w_z": (1.1, -3.0)}


def on_carrier(*joined: tuple[str, ...], carrier: Component | None = None, **parts: Component) -> Driveline:
    """Components and a carrier that all their frames are joined to."""
    d = Driveline("on a carrier")
    d.add("carrier", carrier or MovingCarrier())
    frames = ["carrier.frame_b"]
    for name, part in parts.items():
        d.add(name, part)
        frames += [f"{name}.frame_a"] if "frame_a" in part.flanges else []
    d.connect(*frames)
    for flanges in joined:
        d.connect(*flanges)
    return d


def turning() -> dict[str, object]:
    return {f"carrier.{k}": Ramp(offset=a, height=4.0 * b, duration=4.0) for k, (a, b) in RATES.items()}


def motion(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """omega and z of the carrier at t."""
    omega = np.stack([a + b * t for a, b in RATES.values()])
    return omega, np.stack([np.full_like(t, b) for _, b in RATES.values()])


def moment(r: Result) -> np.ndarray:
    return np.stack([r[f"carrier.t_{axis}"] for axis in "xyz"])


def spin_change(r: Result, rotors: Mapping[str, tuple[float, tuple[float, float, float]]]) -> np.ndarray:
    """Sum of J*n*dw/dt + omega x J*w*n: change in space of the spin relative to the carrier."""
    omega, _ = motion(r.time)
    total = np.zeros((3, len(r.time)))
    for name, (J, direction) in rotors.items():
        n = np.array(direction)[:, None] / np.linalg.norm(direction)
        total += J * n * r[f"{name}.a"] + np.cross(omega, J * n * r[f"{name}.w"], axis=0)
    return total


def test_rotor_lags_behind_its_carrier_and_the_moment_is_minus_the_change_of_its_spin() -> None:
    n = (1.0, 2.0, -2.0)
    axis = dict(zip(("n_x", "n_y", "n_z"), n, strict=True))
    d = on_carrier(
        ("motor.flange", "rotor.flange_a", "speed.flange"), ("motor.support", "mount.flange_b"),
        motor=Torque(), rotor=Rotor1D(J=0.4, w0=20.0, **axis), mount=Mounting1D(**axis),
        speed=AbsoluteSpeedSensor(**axis),
    )  # fmt: skip
    r = Simulation(d, h=1e-3).run(2.0, inputs={**turning(), "motor.tau": 3.0})
    omega, z = motion(r.time)
    e = np.array(n) / 3.0
    # J*(dw/dt + e.z) = tau: the speed in space follows the torque alone
    np.testing.assert_allclose(r["speed.w"], 20.0 + e @ omega[:, 0] + 3.0 / 0.4 * r.time, rtol=1e-12)
    np.testing.assert_allclose(r["rotor.w"], r["speed.w"] - e @ omega, rtol=1e-11)
    np.testing.assert_allclose(r["mount.tau"], -3.0, rtol=1e-13)
    np.testing.assert_allclose(moment(r), -spin_change(r, {"rotor": (0.4, n)}), rtol=1e-10, atol=1e-11)
    # the books close: kinetic energy (relative to the carrier) is what motor and carrier have put in
    work = r["motor.work"] + sum(r[f"rotor.work_{k}"] for k in "xyz")
    np.testing.assert_allclose(r["energy.kinetic"] - r["energy.kinetic"][0], work, rtol=1e-12, atol=1e-11)


def test_moment_is_that_of_a_rotor_turned_in_space_by_rotation_matrices() -> None:
    """Independent of the formula: the spin in world axes, differentiated; carrier about a fixed axis."""
    from scipy.spatial.transform import Rotation

    J, rate, axis = 0.7, 1.3, np.array([0.0, 0.6, 0.8])
    d = on_carrier(("motor.flange", "rotor.flange_a"), ("motor.support", "mount.flange_b"),
                   motor=Torque(), rotor=Rotor1D(J=J, w0=50.0), mount=Mounting1D())  # fmt: skip
    given = {f"carrier.w_{k}": rate * float(x) for k, x in zip("xyz", axis, strict=True)}
    r = Simulation(d, h=1e-3).run(1.0, inputs={**given, "motor.tau": 14.0})

    def spin(t: float) -> np.ndarray:
        return np.asarray(Rotation.from_rotvec(axis * rate * t).apply([J * (50.0 + 20.0 * t), 0.0, 0.0]))

    for k in (1, 500, 999):
        t, dt = float(r.time[k]), 1e-5
        change = (spin(t - 2 * dt) - 8 * spin(t - dt) + 8 * spin(t + dt) - spin(t + 2 * dt)) / (12 * dt)
        in_carrier = Rotation.from_rotvec(-axis * rate * t).apply(change)
        np.testing.assert_allclose(moment(r)[:, k], -in_carrier, rtol=1e-8, atol=1e-7)


def test_without_the_flag_only_the_carriers_acceleration_is_neglected() -> None:
    runs = {}
    for exact in (True, False):
        d = on_carrier(rotor=Rotor1D(J=0.4, w0=20.0, exact=exact))
        runs[exact] = Simulation(d, h=1e-3).run(1.0, inputs=turning())
    omega, z = motion(runs[True].time)
    np.testing.assert_allclose(runs[False]["rotor.w"], 20.0, rtol=1e-14)
    np.testing.assert_allclose(runs[False]["rotor.w"] - runs[True]["rotor.w"], omega[0] - omega[0, 0], atol=1e-12)
    # no flange torque: what is left is -(omega x J*w*n), and J*(n.z)*n with the flag
    wanted = -np.cross(omega, 0.4 * np.array([[1.0], [0.0], [0.0]]) * runs[False]["rotor.w"], axis=0)
    np.testing.assert_allclose(moment(runs[False]), wanted, atol=1e-12)
    assert moment(runs[True])[0] == pytest.approx(0.4 * z[0], rel=1e-12)


def test_bevel_gear_hands_both_shaft_torques_to_the_carrier() -> None:
    d = on_carrier(
        ("motor.flange", "fast.flange_a"), ("motor.support", "mount.flange_b"), ("fast.flange_b", "gear.flange_a"),
        ("gear.flange_b", "slow.flange_a"),
        motor=Torque(), mount=Mounting1D(), fast=Rotor1D(J=1.1), slow=Rotor1D(J=18.2, n_x=0.0, n_y=1.0),
        gear=BevelGear1D(ratio=10, nb_x=0.0, nb_y=1.0),
    )  # fmt: skip
    r = Simulation(d, h=1e-3).run(1.0, inputs={**turning(), "motor.tau": 7.0})
    np.testing.assert_allclose(r["fast.w"], 10.0 * r["slow.w"], rtol=1e-13)
    np.testing.assert_allclose(r["gear.tau_b"], -10.0 * r["gear.tau_a"], rtol=1e-12)
    _, z = motion(r.time)
    assert r["gear.tau_a"] == pytest.approx(7.0 - 1.1 * (r["fast.a"] + z[0]), rel=1e-11)
    rotors = {"fast": (1.1, (1.0, 0.0, 0.0)), "slow": (18.2, (0.0, 1.0, 0.0))}
    np.testing.assert_allclose(moment(r), -spin_change(r, rotors), rtol=1e-10, atol=1e-9)


GEARS = {"4hp22": (zf_4hp22, ("C4", "C6", "C11")), "6hp26": (zf_6hp26, ("A", "C"))}


@pytest.mark.parametrize("box", GEARS)
@pytest.mark.parametrize("direction", [(1.0, 0.0, 0.0), (0.0, 3.0, 4.0)])
def test_a_whole_gearbox_on_a_carrier_gives_it_its_change_of_spin(box: str, direction: tuple[float, ...]) -> None:
    """Clutches, brakes, free wheels and planetary sets inside: what acts within the housing cancels."""
    make, engaged = GEARS[box]
    d = make()
    axis = dict(zip(("n_x", "n_y", "n_z"), direction, strict=True))
    shafts = {name: float(c.J) for name, c in d.components.items() if isinstance(c, Inertia)}
    d.add("motor", Torque())
    d.connect("motor.flange", "in.flange_a")
    d.add("mount", MountedDriveline(**axis))
    d.add("carrier", MovingCarrier())
    d.connect("mount.frame_a", "carrier.frame_b")
    sim = Simulation(d, h=1e-3)
    pressed = {f"{name}.p": Step(height=8e5, startTime=0.05) for name in engaged}
    r = sim.run(0.3, inputs={**turning(), **pressed, "motor.tau": Sine(amplitude=10.0, f=3.0, offset=40.0)})
    assert np.ptp(r["out.w"]) > 1.0 and np.ptp(r["mount.tau"]) > 10.0
    change = spin_change(r, {name: (J, direction) for name, J in shafts.items()})
    size = np.abs(moment(r)).max()
    np.testing.assert_allclose(moment(r)[:, 1:], -change[:, 1:], rtol=0.0, atol=1e-10 * size)


def test_torque_on_the_housing_is_ratio_minus_one_times_the_input_torque_at_rest() -> None:
    """Statics of the 4HP22 in second gear, the output held: the housing takes what input and output do not balance."""
    d = zf_4hp22()
    d.add("motor", Torque())
    d.connect("motor.flange", "in.flange_a")
    d.add("brake", Torque())
    d.connect("brake.flange", "out.flange_b")
    d.add("mount", MountedDriveline(parts="P? C* F* housing S* X R1 in out"))
    d.add("carrier", World())
    d.connect("mount.frame_a", "carrier.frame_b")
    pressed = {f"{name}.p": 12e5 for name in ("C4", "C6", "C11")}
    r = Simulation(d, h=1e-3).run(0.5, inputs={**pressed, "motor.tau": 100.0, "brake.tau": -147.945205479})
    assert abs(r["out.a"][-1]) < 1e-3
    # motor and brake are not among the parts: 100 - 147.945 from outside, the housing takes the sum
    assert r["mount.tau"][-1] == pytest.approx(100.0 - 147.945205479, rel=1e-6)
    assert r["carrier.t_x"][-1] == pytest.approx(r["mount.tau"][-1], rel=1e-12)
    assert r["carrier.t_y"][-1] == r["carrier.t_z"][-1] == 0.0


def test_every_torque_of_every_kind_has_a_support_that_takes_it() -> None:
    """Turning a component as a whole does nothing: the coefficients of each row sum to 0, the housing is a flange."""
    bare = []
    for name, kind in KINDS.items():
        if any(f.domain == "translational" or f.domain == "any" for f in kind.flanges.values()):
            continue
        component, parts = component_from_config(example(kind), Path()), Parts()
        component.contribute(Builder(parts, "x", component, {}))
        forms = [p.form for p in (*parts.constraints, *parts.frictions, *parts.compliances, *parts.contacts)]
        forms += [form for group in port_groups(parts).values() for _, form in group]
        turns = [f for f, s in kind.flanges.items() if s.domain == ROTATIONAL]
        if turns and any(sum(form.terms.values()) for form in forms):
            bare.append(name)
    # it holds its flange in the carrier, which is its purpose; shafts about different axes leave a part to bearings
    assert bare == ["Mounting1D", "UniversalJoint", "JointShaft"]


def test_a_w_that_jumps_has_no_acceleration_unless_that_is_given() -> None:
    jump = {"carrier.w_x": 0.0, "carrier.w_y": Step(height=2.0, startTime=0.5), "carrier.w_z": 0.0}
    rotor = Rotor1D(J=0.4, w0=20.0)
    with pytest.raises(ConfigError, match=r"jumps at t = 0\.5 s .* has no derivative"):
        Simulation(on_carrier(rotor=rotor), h=1e-3).run(1.0, inputs=jump)
    d = on_carrier(rotor=rotor, carrier=MovingCarrier(use_z=True))
    r = Simulation(d, h=1e-3).run(1.0, inputs={**jump, **{f"carrier.z_{k}": 0.0 for k in "xyz"}})
    assert np.ptp(r["rotor.w"]) == 0.0
    assert r["carrier.t_z"][-1] == pytest.approx(2.0 * 0.4 * 20.0, rel=1e-13)
    assert r["carrier.t_z"][499] == 0.0


def test_frames_without_or_with_two_references_are_named() -> None:
    d = Driveline()
    d.add("rotor", Rotor1D(J=1.0))
    with pytest.raises(FloatingFlangeError, match=r"frame rotor\.frame_a is joined to nothing"):
        Simulation(d)
    d.add("mount", Mounting1D())
    d.connect("rotor.frame_a", "mount.frame_a")
    d.connect("rotor.flange_a", "mount.flange_b")
    with pytest.raises(NoReferenceError, match=r"without a reference: mount\.frame_a = rotor\.frame_a") as no:
        Simulation(d)
    assert no.value.components == ("mount", "rotor") and isinstance(no.value, CompileError)
    d.add("ground", World())
    d.add("car", MovingCarrier())
    d.connect("ground.frame_b", "car.frame_b", "mount.frame_a")
    with pytest.raises(OverconstrainedError, match=r"given more than once, by car, ground"):
        Simulation(d)


def test_frames_are_joined_to_frames_only() -> None:
    d = on_carrier(rotor=Rotor1D(J=1.0))
    d.add("shaft", Inertia(J=1.0))
    d.connect("shaft.flange_a", "carrier.frame_b")
    with pytest.raises(DomainError, match=r"a frame is joined to a flange that moves"):
        Simulation(d)


def test_a_shaft_mounted_twice_is_over_determined() -> None:
    d = on_carrier(("a.flange_b", "b.flange_b", "motor.support"), ("motor.flange", "rotor.flange_a"),
                   a=Mounting1D(), b=Mounting1D(), motor=Torque(), rotor=Rotor1D(J=1.0))  # fmt: skip
    with pytest.raises(OverconstrainedError, match=r"a, b"):
        Simulation(d)


def test_inertias_on_two_carriers_and_names_of_nobody_are_named() -> None:
    def gearbox(first: str, second: str) -> Driveline:
        d = zf_6hp26()
        d.add("carrier", World())
        d.add("one", MountedDriveline(parts=first))
        d.add("two", MountedDriveline(parts=second))
        d.connect("carrier.frame_b", "one.frame_a", "two.frame_a")
        return d

    with pytest.raises(OverconstrainedError, match=r"'out' is on a carrier twice, by 'one' and 'two'"):
        Simulation(gearbox("in out", "out"))
    with pytest.raises(UnknownNameError, match=r"there is no component 'put'"):
        Simulation(gearbox("in", "put"))
    with pytest.raises(RangeError, match=r"parts = ' ' is no list of names"):
        MountedDriveline(parts=" ")


@pytest.mark.parametrize("kind", [Rotor1D, Mounting1D, AbsoluteSpeedSensor, MountedDriveline])
def test_an_axis_of_length_0_is_refused(kind: type[Component]) -> None:
    more = {"J": 1.0} if kind is Rotor1D else {}
    with pytest.raises(RangeError, match=r"is no direction"):
        kind(n_x=0.0, **more)
    assert kind(n_x=3.0, n_z=4.0, **more).n == pytest.approx((0.6, 0.0, 0.8))


def test_motion_by_a_function_needs_its_acceleration() -> None:
    with pytest.raises(ConfigError, match="has no exact derivative"):
        Simulation(on_carrier(rotor=Rotor1D(J=1.0))).run(0.01, inputs={"carrier.w_x": Function(lambda t: t)})
