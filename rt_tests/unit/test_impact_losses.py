"""A jump of speed through a gear with losses: the impulse loses as the torque does.

References are closed forms. A ratio that steps from i0 to i1 behind a gear of ratio 1 with the efficiency e in the
direction in which power flows: momentum along the gears, J2 w2' - J2 w2 = -i1 J1 (w1' - w1)/e or times e, and
w1' = i1 w2'.
"""

from __future__ import annotations

import math

import pytest

from torqueloop.core.components import FreeWheel, Inertia, LossyGear, Torque, VariableGear
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.signals import Sine, Step
from torqueloop.core.simulate.offline import Simulation

J1, J2, W2 = 0.4, 1.5, 50.0
ETA1, ETA2 = 0.8, 0.5
TABLE = [[0.0, ETA1, ETA2, 0.0, 0.0]]


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(("i0", "i1"), [(2.0, 2.5), (2.5, 2.0)])
def test_a_step_of_the_ratio_loses_what_the_gear_loses(i0: float, i1: float, sign: float) -> None:
    """Up: shaft 1 is made faster, power flows back through the gear (eta2). Down: shaft 1 drives (eta1)."""
    d = Driveline("step", order=2)
    d.add("a", Inertia(J=J1, phi0=0.0, w0=sign * i0 * W2))
    d.add("lossy", LossyGear(ratio=1, lossTable=TABLE))
    d.add("gear", VariableGear())
    d.add("b", Inertia(J=J2, phi0=0.0, w0=sign * W2))
    d.connect("a.flange_b", "lossy.flange_a")
    d.connect("lossy.flange_b", "gear.flange_a")
    d.connect("gear.flange_b", "b.flange_a")
    sim = Simulation(d, h=1e-3)
    run = sim.run(0.02, {"gear.ratio": Step(height=i1 - i0, offset=i0, startTime=0.01)})
    part = 1.0 / ETA2 if i1 > i0 else ETA1
    expected = (J2 + i1 * part * J1 * i0) * W2 / (J2 + i1 * i1 * part * J1)
    assert run["b.w"][-1] == pytest.approx(sign * expected, rel=1e-9)
    assert run["a.w"][-1] == pytest.approx(sign * i1 * expected, rel=1e-9)
    # impulse of shaft 1 times the mean of its speeds, the part that is lost
    impulse = J1 * (i1 * expected - i0 * W2)
    heat = impulse * (1.0 / ETA2 - 1.0) if i1 > i0 else -impulse * (1.0 - ETA1)
    assert run["lossy.heat"][-1] == pytest.approx(heat * 0.5 * (i1 * expected + i0 * W2), rel=1e-9)
    assert run.energy().relative_residual < 1e-12 and run["gear.loss"][-1] > 0.0


@pytest.mark.parametrize(("w", "J", "part"), [(50.0, J2, ETA1), (-20.0, 0.1, ETA1), (-20.0, J2, 1.0 / ETA2)])
def test_a_free_wheel_that_is_caught_up_through_a_gear_with_losses_loses_it_too(
    w: float, J: float, part: float
) -> None:
    """A shaft of its own speed meets a slower one at a start: the impact drives it through the gear (eta1). One that
    turns backward is turned round: which way power flows is a matter of the mean of its speeds before and after."""
    d = Driveline("caught")
    d.add("a", Inertia(J=J1, phi0=0.0, w0=80.0))
    d.add("wheel", FreeWheel())
    d.add("m", Inertia(J=0.2, phi0=0.0, w0=w))
    d.add("lossy", LossyGear(ratio=1, lossTable=TABLE))
    d.add("b", Inertia(J=J, phi0=0.0, w0=w))
    d.connect("a.flange_b", "wheel.flange_a")
    d.connect("wheel.flange_b", "m.flange_a")
    d.connect("m.flange_b", "lossy.flange_a")
    d.connect("lossy.flange_b", "b.flange_a")
    run = Simulation(d, h=1e-3).run(0.01)
    common = ((J1 * 80.0 + 0.2 * w) * part + J * w) / ((J1 + 0.2) * part + J)
    assert (0.5 * (common + w) > 0.0) == (part == ETA1)
    assert run["b.w"][-1] == pytest.approx(common, rel=1e-9)
    assert math.isclose(run["a.w"][-1], common, rel_tol=1e-9)
    assert run.energy().relative_residual < 1e-12


@pytest.mark.parametrize("order", [2, 4])
def test_chained_lossy_gears_change_the_direction_of_power_without_a_fallback(order: int) -> None:
    """Three gears and a load that swings: every change of branch is located, energy closes."""
    d = Driveline("chain", order=order)
    d.add("t", Torque())
    d.add("J0", Inertia(J=0.1, phi0=0.0, w0=100.0))
    d.connect("t.flange", "J0.flange_a")
    for k in range(1, 4):
        d.add(f"g{k}", LossyGear(ratio=2, lossTable=[[0.0, 0.95, 0.9, 0.05, 0.1], [300.0, 0.9, 0.85, 0.2, 0.3]]))
        d.add(f"J{k}", Inertia(J=0.1 * 4.0**k, phi0=0.0))
        d.connect(f"J{k - 1}.flange_b", f"g{k}.flange_a")
        d.connect(f"g{k}.flange_b", f"J{k}.flange_a")
    run = Simulation(d, h=1e-3).run(1.0, {"t.tau": Sine(amplitude=60.0, f=3.0)})
    assert run.counters["fallbacks"] == 0 and run.counters["events"] >= 12
    assert run.energy().relative_residual < 1e-6
