"""Dog clutches: when teeth engage and let go, what an impact leaves, and that they are rigid between."""

from __future__ import annotations

import math

import numpy as np
import pytest
from built_steps import same_bits

from torqueloop.core.components import Brake, DogClutch, Fixed, Inertia, SpringDamper, Torque
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.signals import Pulse, Sine
from torqueloop.core.simulate.offline import Simulation

#: kg m2
JA, JB = 0.02, 0.05


def two_shafts(order: int, w_a: float, w_b: float, **teeth: float) -> Driveline:
    """a with a torque, teeth, b with a torque."""
    d = Driveline("dogs", order=order)
    for name, part in {
        "ta": Torque(), "a": Inertia(J=JA, w0=w_a, phi0=0.0), "dog": DogClutch(**teeth),
        "b": Inertia(J=JB, w0=w_b, phi0=0.0), "tb": Torque(),
    }.items():  # fmt: skip
        d.add(name, part)
    d.connect("ta.flange", "a.flange_a")
    d.connect("a.flange_b", "dog.flange_a")
    d.connect("dog.flange_b", "b.flange_a")
    d.connect("tb.flange", "b.flange_b")
    return d


def driven(d: Driveline, time: float, h: float = 1e-3, **inputs: object):
    given = {"dog.engage": 1.0, "ta.tau": 0.0, "tb.tau": 0.0, **{k.replace("__", "."): v for k, v in inputs.items()}}
    return Simulation(d, h=h).run(time, given)


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("torque", [1.0, -3.0])
def test_teeth_engage_where_the_speeds_are_equal(order: int, torque: float) -> None:
    """b runs away from a; the torque brings a to its speed within a step, and both go on as one shaft."""
    gap = 10.0 if torque > 0.0 else -10.0
    run = driven(two_shafts(order, 20.0, 20.0 + gap), 0.5, ta__tau=torque)
    meet = JA * gap / torque
    t = run.t[run.t > meet + 1e-9]
    together = 20.0 + gap + torque / (JA + JB) * (t - meet)
    for shaft in ("a", "b"):
        assert run[f"{shaft}.w"][run.t > meet + 1e-9] == pytest.approx(together, abs=1e-11)
    assert run["dog.engaged"][run.t < meet].max() == 0.0
    assert run["dog.engaged"][run.t > meet].min() == 1.0
    # the torque on flange_a drives b
    assert run["dog.tau"][-1] == pytest.approx(-torque * JB / (JA + JB), abs=1e-10)
    assert run["dog.tau"][run.t < meet - 1e-3].max() == 0.0
    assert run.energy().relative_residual < 1e-12 and run["dog.loss"][-1] < 1e-20


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("way", [1.0, -1.0])
def test_an_impact_at_the_speed_of_the_teeth_keeps_the_momentum(order: int, way: float) -> None:
    run = driven(two_shafts(order, 20.0, 20.0 + way * 10.0, w_sync=2.0), 0.5, ta__tau=way * 1.0)
    meet = JA * 8.0
    before = np.array([20.0 + way * 8.0, 20.0 + way * 10.0])
    after = (JA * before[0] + JB * before[1]) / (JA + JB)
    k = int(np.searchsorted(run.t, meet)) + 1
    assert run["a.w"][k] == pytest.approx(after + way * 1.0 / (JA + JB) * (run.t[k] - meet), abs=1e-10)
    assert run["b.w"][k] == pytest.approx(run["a.w"][k], abs=1e-12)
    lost = 0.5 * JA * JB / (JA + JB) * 2.0**2
    assert run["dog.loss"][-1] == pytest.approx(lost, rel=1e-9)
    assert run.energy().relative_residual < 1e-12


def test_teeth_that_are_not_asked_for_stay_apart() -> None:
    run = driven(two_shafts(4, 20.0, 30.0, w_sync=2.0), 0.5, ta__tau=1.0, dog__engage=0.0)
    assert run["dog.engaged"].max() == 0.0
    assert run["a.w"][-1] == pytest.approx(20.0 + 1.0 / JA * 0.5) and run["b.w"][-1] == 30.0


@pytest.mark.parametrize("order", [2, 4])
def test_teeth_let_go_where_their_torque_is_small_enough(order: int) -> None:
    """The torque falls by a line; flanks under load hold until theirs is 0.5 N.m, between two grid points."""
    drive = [(0.0, 4.0), (0.4, -0.01)]
    run = driven(
        two_shafts(order, 10.0, 10.0, tau_release=0.5), 0.45, ta__tau=lambda t: np.interp(t, *zip(*drive, strict=True)),
        dog__engage=lambda t: np.where(np.asarray(t) < 0.1, 1.0, 0.0),
    )  # fmt: skip
    rate = 4.01 / 0.4
    free = (4.0 - 0.5 * (JA + JB) / JB) / rate
    held = run["dog.engaged"] > 0.0
    assert run.t[held][-1] <= free < run.t[~held][0] + 1e-12 and held[0]
    at_free = 10.0 + (4.0 * free - 0.5 * rate * free**2) / (JA + JB)
    assert run["b.w"][-1] == pytest.approx(at_free, abs=1e-9)
    t = run.t[-1]
    left = 4.0 * (0.4 - free) - 0.5 * rate * (0.4**2 - free**2) - 0.01 * (t - 0.4)
    assert run["a.w"][-1] == pytest.approx(at_free + left / JA, abs=1e-8)
    assert run.energy().relative_residual < 1e-11


@pytest.mark.parametrize("order", [2, 4])
def test_teeth_under_load_hold_though_nobody_asks_for_them(order: int) -> None:
    run = driven(
        two_shafts(order, 10.0, 10.0, tau_release=0.5), 0.3, ta__tau=4.0,
        dog__engage=lambda t: np.where(np.asarray(t) < 0.1, 1.0, 0.0),
    )  # fmt: skip
    assert run["dog.engaged"].min() == 1.0
    assert run["b.w"][-1] == pytest.approx(10.0 + 4.0 / (JA + JB) * 0.3, abs=1e-11)


@pytest.mark.parametrize("order", [2, 4])
def test_teeth_beside_a_spring_have_the_order_of_the_method(order: int) -> None:
    """b hangs on a torsion spring; a is brought to its speed. Against the closed form of both phases."""
    c, torque, w_b = 40.0, 0.8, 6.0

    def line() -> Driveline:
        d = two_shafts(order, 0.0, w_b)
        d.add("spring", SpringDamper(c=c, d=0.0))
        d.add("wall", Fixed())
        d.connect("b.flange_b", "spring.flange_a")
        d.connect("spring.flange_b", "wall.flange")
        return d

    root = math.sqrt(c / JB)
    lo, hi = 0.0, 0.1
    for _ in range(80):
        mid = 0.5 * (lo + hi)
        lo, hi = (mid, hi) if torque / JA * mid < w_b * math.cos(root * mid) else (lo, mid)
    meet = 0.5 * (lo + hi)
    w0, z0, own = w_b * math.cos(root * meet), w_b / root * math.sin(root * meet), math.sqrt(c / (JA + JB))
    rest = torque / c
    errors = []
    for h in (2e-3, 1e-3, 5e-4):
        run = driven(line(), 0.2, h=h, ta__tau=torque)
        x = own * (run.t[-1] - meet)
        errors.append(abs(run["b.w"][-1] - (w0 * math.cos(x) - (z0 - rest) * own * math.sin(x))))
        assert run.energy().relative_residual < 1e-4
    slopes = [math.log2(a / b) for a, b in zip(errors, errors[1:], strict=False)]
    assert errors[-1] < (2e-3 if order == 2 else 1e-7), errors
    assert min(slopes) > order - 0.5, (errors, slopes)


def shifted(order: int) -> Driveline:
    """Teeth between shafts on stiff springs that a step does not resolve, and a clutch that stops them."""
    d = two_shafts(order, -5.0, -4.0, w_sync=0.5, tau_release=2.0)
    parts = {
        "s": SpringDamper(c=4e5, d=3.0), "end": Inertia(J=0.01, w0=-4.0, phi0=0.0), "load": Torque(), "ground": Fixed(),
        "brake": Brake(fn_max=8.0, mue_pos=[[0.0, 0.5], [30.0, 0.4]]),
    }  # fmt: skip
    for name, part in parts.items():
        d.add(name, part)
    d.connect("b.flange_b", "s.flange_a")
    d.connect("s.flange_b", "end.flange_a")
    d.connect("end.flange_b", "load.flange", "brake.flange_a")
    d.connect("brake.support", "ground.flange")
    return d


TEETH = {
    "dog.engage": Pulse(period=0.1, width=60.0), "ta.tau": Sine(amplitude=6.0, f=9.0), "tb.tau": 0.3, "load.tau": -0.2,
    "brake.f_normalized": Pulse(period=0.07, width=50.0),
}  # fmt: skip


@pytest.mark.parametrize("order", [2, 4])
def test_energy_closes_where_teeth_meet_stiff_springs(order: int) -> None:
    run = Simulation(shifted(order), h=1e-3).run(2.0, TEETH)
    changes = np.count_nonzero(np.diff(run["dog.engaged"]))
    assert changes >= 20
    assert run.energy().relative_residual < 1e-4 and min(run.energy().heat.values()) >= 0.0
    assert np.abs(run["a.w"] - run["b.w"])[run["dog.engaged"] > 0.0].max() < 1e-9


@pytest.mark.parametrize("order", [2, 4])
def test_a_precompiled_step_has_the_bits_of_the_generic_one(order: int) -> None:
    same_bits(shifted, order, TEETH, 1000)


def test_a_state_says_whether_teeth_hold() -> None:
    """A run that is continued from a state with engaged teeth repeats the bits of the run that went on."""
    sim = Simulation(two_shafts(4, 20.0, 30.0, w_sync=2.0))
    given = {"dog.engage": 1.0, "ta.tau": 1.0, "tb.tau": 0.0}
    sim.run(0.25, given)
    kept = sim.state.copy()
    assert sim.output("dog.engaged") == 1.0
    sim.run(0.05, {"dog.engage": 0.0})
    future = sim.hash()
    assert sim.output("dog.engaged") == 1.0
    sim.restore(kept)
    sim.run(0.05, {"dog.engage": 0.0})
    assert sim.hash() == future


def test_engaged_teeth_hold_in_a_step_that_an_impulse_ends() -> None:
    """More shafts stop within one step than it has events: the impulse step ends it, and the teeth are rigid in it."""
    d = two_shafts(2, 20.0, 20.0)
    for k in range(30):
        d.add(f"J{k}", Inertia(J=1.0, w0=1.0 + 0.1 * k))
        d.add(f"b{k}", Brake(fn_max=100.0, mue_pos=1.0))
        d.connect(f"J{k}.flange_a", f"b{k}.flange_a")
    run = driven(d, 0.5, h=0.1, ta__tau=1.0, **{f"b{k}__f_normalized": 1.0 for k in range(30)})
    assert run.counters["fallbacks"] >= 1
    together = 20.0 + run.t / (JA + JB)
    assert run["a.w"] == pytest.approx(together, rel=1e-12)
    assert run["b.w"] == pytest.approx(together, rel=1e-12)
    assert run["dog.engaged"].min() == 1.0 and run["dog.loss"][-1] == 0.0
