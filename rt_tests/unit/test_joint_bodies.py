"""Joint shafts whose bearings are on rigid bodies of the model: their motion against an integration of all bodies that
has its twist from the geometry of the crosses and its forces from statics; orders, momentum, energy."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from built_steps import built, scratch_suffices
from posed_shafts import ASSEMBLED, BEARINGS, JA, JB, SHAFT, Array, Geometry, cross, matrix, moved, sway

from torqueloop.core.components import (
    BodyMount,
    Clutch,
    FixedMount,
    Inertia,
    JointShaft,
    MovingCarrier,
    RigidBody,
    Rotor1D,
    ShaftBearing,
    Torque,
    UniversalJoint,
    World,
)
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import CompileError
from torqueloop.core.signals import Sine
from torqueloop.core.simulate.offline import Simulation

integrate = pytest.importorskip("scipy.integrate", reason="the reference needs SciPy (extra `dev`)")

TENSORS = (
    np.array([[0.8, 0.1, -0.15], [0.1, 1.3, 0.2], [-0.15, 0.2, 1.7]]),
    np.array([[1.1, 0.05, 0.1], [0.05, 0.9, -0.1], [0.1, -0.1, 1.4]]),
)
MASSES = 30.0, 50.0
#: mounts: their places, stiffness and damping along x, y, z, and about them
PLACES = np.array([-0.1, 0.05, 0.03]), np.array([0.1, -0.02, 0.04])
C, D = np.array([6e4, 4e4, 5e4]), np.array([80.0, 60.0, 90.0])
C_ROT, D_ROT = np.array([3e3, 2e3, 2.5e3]), np.array([5.0, 4.0, 6.0])
DRIVE = {"t.tau": Sine(amplitude=20.0, f=1.3)}
AXES = "xyz"


def body(k: int, **more: float) -> RigidBody:
    """Body A (0) or B (1)."""
    t = TENSORS[k]
    six = {"I_11": t[0, 0], "I_22": t[1, 1], "I_33": t[2, 2], "I_21": t[1, 0], "I_31": t[2, 0], "I_32": t[2, 1]}
    return RigidBody(m=MASSES[k], **{key: float(v) for key, v in six.items()}, x0=0.8 * k, **more)


def mount(k: int) -> BodyMount:
    values = {f"r_{x}": float(v) for x, v in zip(AXES, PLACES[k], strict=True)}
    for key, numbers in (("c", C), ("d", D), ("crot", C_ROT), ("drot", D_ROT)):
        values |= {f"{key}_{x}": float(v) for x, v in zip(AXES, numbers, strict=True)}
    return BodyMount(**values)


def on_bodies(
    order: int | str = 4, second: Component | None = None, shaft: Component = SHAFT, mounts: bool = True,
    Ja: float = JA, Jb: float = JB, w: float = 30.0, bearings: tuple[ShaftBearing, ShaftBearing] = BEARINGS,
    bodies: tuple[RigidBody, RigidBody] | None = None, reverse: bool = False,
) -> Driveline:  # fmt: skip
    """A motor and rotor a on body A, the shaft, rotor b on body B, or an inertia on the carrier `second`."""
    first, last = bodies or (body(0), body(1))
    axes = [{f"n_{x}": getattr(bearing, f"n_{x}") for x in AXES} for bearing in bearings]
    parts: dict[str, Component] = {
        "A": first, "B": second or last, "p": bearings[0], "s": bearings[1], "u": shaft, "t": Torque(),
        "a": Rotor1D(J=Ja, phi0=0.0, w0=w, **axes[0]),
        "b": Inertia(J=Jb, phi0=0.0, w0=w) if second else Rotor1D(J=Jb, phi0=0.0, w0=w, **axes[1]),
    }  # fmt: skip
    frames = [["A.frame_b", "p.frame_a", "a.frame_a"], ["B.frame_b", "s.frame_a"]]
    if second is None:
        frames[1].append("b.frame_a")
    for k in range(2 if second is None else 1) if mounts else ():
        parts[f"m{k}"] = mount(k)
        frames[k].append(f"m{k}.frame_a")
    lines = [["t.flange", "a.flange_a"], ["a.flange_b", "u.flange_a", "p.flange"],
             ["u.flange_b", "s.flange", "b.flange_a"], *frames]  # fmt: skip
    d = Driveline("bodies", order=order)
    for name in reversed(parts) if reverse else parts:
        d.add(name, parts[name])
    for line in reversed(lines) if reverse else lines:
        d.connect(*(reversed(line) if reverse else line))
    return d


class Bodies:
    """Both bodies by Newton's and Euler's equations about their mass centres, with the twist of the geometry and the
    forces of statics: DOP853. State per body: quaternion, place, rates, velocity (along its axes), deflections of its
    mount; then the angles of both rotors and their speeds. `given`: the pose of carrier B instead."""

    def __init__(self, given: Any = None) -> None:
        self.given = given
        self.geometry = Geometry(SHAFT, None, None, ASSEMBLED)  # type: ignore[arg-type]

    def poses(self, t: float, y: Array) -> list[Array]:
        found = [y[0:7].copy(), y[19:26].copy() if self.given is None else self.given(t)]
        for pose in found:
            pose[:4] /= math.sqrt(pose[:4] @ pose[:4])
        return found

    def twist(self, poses: list[Array], phi: Array) -> float:
        self.geometry.poses = (lambda t: poses[0], lambda t: poses[1])
        return float(phi[0] - phi[1] + math.remainder(self.geometry.twist(0.0, *phi) - phi[0] + phi[1], math.pi))

    def rates(self, t: float, y: Array) -> Array:
        out, e = np.zeros_like(y), 1e-6
        poses, phi, spin = self.poses(t, y), y[38:40], y[40:42]
        moving = []
        for k in range(2):
            q, w, v = poses[k][:4], y[19 * k + 7 : 19 * k + 10], y[19 * k + 10 : 19 * k + 13]
            moving.append(np.array([-0.5 * q[1:] @ w, *(0.5 * (q[0] * w + cross(q[1:], w))), *(matrix(q) @ v)]))
        ahead, back = ([poses[0] + d * moving[0], poses[1] + d * moving[1]] for d in (e, -e))
        if self.given is not None:
            ahead[1], back[1] = (self.given(t + d) for d in (e, -e))
        rate = (self.twist(ahead, phi + e * spin) - self.twist(back, phi - e * spin)) / (2.0 * e)
        tau = SHAFT.c * self.twist(poses, phi) + SHAFT.d * rate
        couples, force, x = self.geometry.forces(0.0, float(phi[0]), float(phi[1]), tau)
        out[38:40] = spin
        for k, (f, J) in enumerate(((force, JA), (-force, JB))):
            n, at = self.geometry.n[k], 19 * k
            R = matrix(poses[k])
            torque = -couples[k] @ R @ n + (20.0 * math.sin(2.6 * math.pi * t) if k == 0 else 0.0)
            if k == 1 and self.given is not None:
                out[41] = torque / J
                continue
            w, v, turned, way = (y[at + j : at + j + 3] for j in (7, 10, 13, 16))
            r = PLACES[k]
            pad = -C * (way + cross(turned, r)) - D * (v + cross(w, r))
            F = R.T @ f + pad
            T = cross(R.T @ (x[k] - poses[k][4:]), R.T @ f) - R.T @ couples[k]
            T += cross(r, pad) - C_ROT * turned - D_ROT * w
            # I w' + J n spin' = T - w x (I w + J n spin),  J (spin' + n.w') = torque of motor and shaft on the rotor
            H = TENSORS[k] @ w + J * n * spin[k]
            left = np.block([[TENSORS[k], J * n[:, None]], [J * n[None, :], np.array([[J]])]])
            found = np.linalg.solve(left, np.array([*(T - cross(w, H)), torque]))
            out[at : at + 7] = moving[k]
            out[at + 7 : at + 10], out[40 + k] = found[:3], found[3]
            out[at + 10 : at + 13] = F / MASSES[k] - cross(w, v)
            out[at + 13 : at + 19] = np.array([*w, *v])
        return out

    def run(self, t: Array) -> dict[str, Array]:
        start = np.zeros(42)
        start[[0, 19]], start[23], start[40:] = 1.0, 0.8, 30.0
        y = integrate.solve_ivp(
            self.rates, (0.0, t[-1]), start, method="DOP853", rtol=1e-11, atol=1e-13, t_eval=t
        ).y  # fmt: skip
        found = {"a.w": y[40], "b.w": y[41], "a.phi": y[38]}
        for k, name in enumerate("AB" if self.given is None else "A"):
            for j, key in enumerate(("q1", "q2", "q3", *AXES)):
                found[f"{name}.{key}"] = y[19 * k + 1 + j]
            for j, key in enumerate((*(f"w_{x}" for x in AXES), *(f"v_{x}" for x in AXES))):
                found[f"{name}.{key}"] = y[19 * k + 7 + j]
        return found


@pytest.fixture(scope="module", params=["two bodies", "a body and a moving carrier"])
def case(request: pytest.FixtureRequest) -> tuple[dict[str, Any], dict[str, Any], dict[str, Array]]:
    """Arguments of on_bodies, inputs, and the reference every 8 ms."""
    t = np.linspace(0.0, 0.048, 7)
    if request.param == "two bodies":
        return {}, DRIVE, Bodies().run(t)
    pose = sway(0.0)

    def given(t: float) -> Array:
        # from the place where the shaft was put together
        now = sway(t) - pose
        return np.array([*np.sqrt([1.0 - now[1:4] @ now[1:4]]), *now[1:4], 0.8 + now[4], *now[5:]])

    carrier = MovingCarrier(use_z=True, attitude=True, x0=0.8)
    return {"second": carrier}, DRIVE | moved(B=given), Bodies(given).run(t)


def test_bodies_begin_where_they_are_put() -> None:
    """Joints in both mass centres, and the distance between them."""
    places = np.array([0.3, -0.2, 0.1]), np.array([1.1, 0.05, -0.25])
    first, second = (replace(body(k), **dict(zip(("x0", "y0", "z0"), places[k].tolist(), strict=True))) for k in (0, 1))
    line = on_bodies(bodies=(first, second), bearings=(ShaftBearing(n_x=1.0), ShaftBearing(n_x=1.0)))
    sim = Simulation(line, h=1e-5)
    sim.step()
    assert sim.output("u.distance") == pytest.approx(np.linalg.norm(places[1] - places[0]), rel=1e-6)


@pytest.mark.parametrize("order", [2, 4])
def test_the_motion_has_the_order_that_is_asked_for(order: int, case: Any) -> None:
    arguments, inputs, reference = case
    errors = []
    for h in (1e-3, 5e-4, 2.5e-4):
        run = Simulation(on_bodies(order, **arguments), h=h).run(0.048, inputs)
        every = round(0.008 / h)
        errors.append([np.abs(run[k][::every] - v).max() / np.ptp(v) for k, v in reference.items()])
    slopes = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
    assert slopes.min() > order - 0.3, dict(zip(reference, slopes.T, strict=True))
    assert np.max(errors[-1]) < (1e-2 if order == 2 else 2e-6), dict(zip(reference, errors[-1], strict=True))


@pytest.mark.parametrize("order", [2, 4])
def test_two_free_bodies_keep_momentum_and_energy(order: int) -> None:
    """Both turn in space, and the shaft between them is loaded: nothing acts from outside."""
    rates = {"w0_x": 0.4, "w0_y": -0.25, "w0_z": 0.3}, {"w0_x": 0.1, "w0_y": -0.2, "w0_z": 0.25, "v0_y": 0.1}
    drifts = []
    for h in (1e-3, 5e-4):
        sim = Simulation(on_bodies(order, mounts=False, bodies=(body(0, **rates[0]), body(1, **rates[1]))), h=h)
        run = sim.run(0.3, DRIVE)
        linear, angular = np.zeros((len(run.time), 3)), np.zeros((len(run.time), 3))
        for k, (name, rotor, J) in enumerate((("A", "a", JA), ("B", "b", JB))):
            n = np.array([getattr(BEARINGS[k], f"n_{x}") for x in AXES])
            columns = [[f"{name}.{g}{x}" for x in AXES] for g in ("", "w_", "v_")]
            x, w, v = (np.column_stack([run[c] for c in group]) for group in columns)
            q = np.column_stack([run[f"{name}.q{j}"] for j in range(4)])
            H = w @ TENSORS[k] + J * np.outer(run[f"{rotor}.w"], n / np.linalg.norm(n))
            for i, R in enumerate(map(matrix, q)):
                linear[i] += MASSES[k] * R @ v[i]
                angular[i] += R @ H[i] + MASSES[k] * cross(x[i], R @ v[i])
        drifts.append([np.abs(p - p[0]).max() / np.abs(p).max() for p in (linear, angular)])
        assert run.energy().relative_residual < (1e-13 if order == 2 else 1e-6)
        assert np.abs(run["A.w_x"]).max() > 4.0 and np.abs(run["u.tau"]).max() > 5.0
    assert np.max(drifts[1]) < (2e-5 if order == 2 else 1e-8), drifts
    assert np.min(np.log2(np.array(drifts[0]) / np.array(drifts[1]))) > order - 0.5, drifts


def bent(beta: float) -> tuple[ShaftBearing, ShaftBearing]:
    """Bearings that bend both joints by about beta."""
    c, s = math.cos(beta), math.sin(beta)
    return (ShaftBearing(n_x=c, n_z=s, r_x=0.1, r_z=0.05), ShaftBearing(n_x=c, n_y=0.3 * s, n_z=0.95 * s, r_x=-0.15))


@pytest.mark.filterwarnings("ignore:bodies. u:RuntimeWarning")
@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize(
    ("c", "beta", "Ja", "Jb", "w"),
    [(1e5, 0.35, 0.02, 0.05, 50.0), (1e7, 0.35, 0.02, 0.05, 50.0), (1e4, 0.35, 7e-7, 0.7, 50.0),
     (1e4, 0.8, 0.02, 0.05, 50.0), (1e5, 1.2, 0.02, 0.05, 50.0), (1e5, 1.28, 0.02, 0.05, 20.0),
     (1e7, 1.2, 0.02, 0.05, 0.0), (1e7, 0.8, 0.02, 0.05, 200.0)],
)  # fmt: skip
def test_energy_closes_with_stiff_shafts_and_large_bends(
    order: int, c: float, beta: float, Ja: float, Jb: float, w: float
) -> None:
    """Steps of 1 ms resolve few of these oscillations; forces that turning axes add do no work all the same."""
    shaft = JointShaft(c=c, d=2e-4 * c)
    run = Simulation(on_bodies(order, shaft=shaft, Ja=Ja, Jb=Jb, w=w, bearings=bent(beta)), h=1e-3).run(0.3, DRIVE)
    balance = run.energy()
    assert balance.relative_residual < (3e-9 if order == 2 else 1e-4)
    turning = sum(v for k, v in balance.work.items() if ".work_" in k)
    assert abs(turning) < 1e-5 * balance.turned_over
    assert min(balance.heat.values()) >= 0.0 and run.counters["steep_unsolved"] == run.counters["fallbacks"] == 0


def test_a_body_that_is_held_is_a_carrier_at_rest() -> None:
    """The same twist, torques and speeds as between resting carriers, whose poses are inputs."""
    held = on_bodies(4, World(), mounts=False, shaft=UniversalJoint(c=3000.0, d=0.3, theta=0.2))
    held.add("hold", FixedMount())
    held.connect("hold.frame_a", "A.frame_b")
    given = Driveline("given", order=4)
    parts: dict[str, Component] = {
        "A": MovingCarrier(use_z=True, attitude=True), "B": World(), "p": BEARINGS[0], "s": BEARINGS[1],
        "u": UniversalJoint(c=3000.0, d=0.3, theta=0.2), "t": Torque(),
        "a": Inertia(J=JA, phi0=0.0, w0=30.0), "b": Inertia(J=JB, phi0=0.0, w0=30.0),
    }  # fmt: skip
    for name, part in parts.items():
        given.add(name, part)
    for line in (["t.flange", "a.flange_a"], ["a.flange_b", "u.flange_a", "p.flange"], ["A.frame_b", "p.frame_a"],
                 ["u.flange_b", "s.flange", "b.flange_a"], ["B.frame_b", "s.frame_a"]):  # fmt: skip
        given.connect(*line)
    one, other = (Simulation(d, h=1e-3).run(0.5, DRIVE) for d in (held, given))
    for name in ("u.tau", "u.twist", "u.bend_a", "a.w", "b.w", "u.loss"):
        np.testing.assert_allclose(one[name], other[name], rtol=1e-9, atol=1e-9)
    assert np.ptp(one["u.tau"]) > 10.0 and np.abs(one["u.work_bend"]).max() < 1e-12


def test_what_an_input_bends_beside_a_body_does_the_work_of_bending() -> None:
    carrier = MovingCarrier(use_z=True, attitude=True, x0=0.8)

    def nods(t: float) -> Array:
        half = 0.1 * math.sin(5.0 * t)
        return np.array([math.cos(half), 0.0, math.sin(half), 0.0, 0.8, 0.02 * math.sin(7.0 * t), 0.0])

    run = Simulation(on_bodies(4, carrier), h=1e-3).run(0.6, DRIVE | moved(B=nods))
    assert run.energy().relative_residual < 1e-6 and np.abs(run["u.work_bend"]).max() > 1e-2


@pytest.mark.parametrize("order", [2, 4])
def test_a_saved_state_goes_on_to_the_bit_and_the_order_of_listing_changes_nothing(order: int) -> None:
    runs = [Simulation(on_bodies(order, reverse=reverse), h=1e-3) for reverse in (False, True)]
    for sim in runs:
        sim.set_input("t.tau", DRIVE["t.tau"])
    for _ in range(60):
        for sim in runs:
            sim.step()
        assert runs[0].hash() == runs[1].hash()
    sim, kept = runs[0], runs[0].state.copy()
    for _ in range(60):
        sim.step()
    end = sim.hash()
    sim.restore(kept)
    assert sim.hash() != end
    for _ in range(60):
        sim.step()
    assert sim.hash() == end


def with_clutch(order: int) -> Driveline:
    """A clutch on shaft b that a pressure closes and opens."""
    d = on_bodies(order)
    d.add("k", Clutch(fn_max=40.0, mue_pos=0.5, peak=1.1))
    d.add("c", Inertia(J=0.1))
    d.connect("b.flange_b", "k.flange_a")
    d.connect("k.flange_b", "c.flange_a")
    return d


PRESS = {**DRIVE, "k.f_normalized": Sine(amplitude=0.5, f=25.0, offset=0.4)}


@pytest.mark.parametrize("order", [2, 4])
def test_the_precompiled_step_has_the_bits_of_the_generic_one(order: int) -> None:
    kernels = ("generic", built(with_clutch(order)))
    runs = [Simulation(with_clutch(order), h=1e-3, kernel=kernel) for kernel in kernels]
    for _ in range(300):
        for sim in runs:
            for key, signal in PRESS.items():
                sim.set_input(key, signal)
            sim.step()
        assert runs[0].hash() == runs[1].hash()
    assert runs[0].state.counters["events"] > 4 and runs[0].state.counters == runs[1].state.counters


@pytest.mark.parametrize("order", [2, 4])
def test_scratch_memory_suffices(order: int) -> None:
    scratch_suffices(with_clutch(order), PRESS, 0.3)


def test_both_joints_at_one_place_are_refused() -> None:
    with pytest.raises(CompileError, match="'u' has no direction: p and s are at one place"):
        place = {"n_x": 1.0, "r_x": 0.4}, {"n_x": 1.0, "r_x": -0.4}
        Simulation(on_bodies(bearings=(ShaftBearing(**place[0]), ShaftBearing(**place[1]))), h=1e-3)
