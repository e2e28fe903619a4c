"""Events of one element, or of several on one shaft: who sticks, slides, or stands at its limit while others hold, in
closed form.

Two brakes on one shaft share a torque T that holds it with the least norm: each T/2, until one is at its limit.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_kernel_event_cost import H

from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components import Brake, Fixed, Inertia, SpringDamper, Torque
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.simulate.offline import Simulation
from torqueloop.cython_kernels.kernel.kernel import KernelModel, KernelState

J = 2.0
orders = pytest.mark.parametrize("order", [2, 4])


def braked_shaft(limits: tuple[float, float], w0: float = 0.0, peak: float = 1.0) -> Driveline:
    """A shaft with two brakes of these sliding capacities, and a torque."""
    d = Driveline("braked shaft")
    d.add("shaft", Inertia(J=J, w0=w0))
    d.add("drive", Torque())
    d.connect("drive.flange", "shaft.flange_a")
    for name, limit in zip("ab", limits, strict=True):
        d.add(name, Brake(fn_max=limit, mue_pos=1.0, peak=peak))
        d.connect(f"{name}.flange_a", "shaft.flange_a")
    return d


class Run:
    """Step by step from rest or w0, both brakes pressed, with ramps of the torque of the drive."""

    def __init__(self, d: Driveline, order: int) -> None:
        self.compiled = compile_driveline(d)
        self.model = KernelModel(replace(self.compiled.arrays, order=order), H, "generic")
        self.state = KernelState(self.model)
        self.torque = 0.0

    def ramp(self, torque: float, steps: int) -> Run:
        """To that torque."""
        inputs = np.ones((steps, 3, len(self.compiled.input_names)))
        line = np.linspace(self.torque, torque, 2 * steps + 1)
        drive = self.compiled.input_index("drive.tau")
        inputs[:, 0, drive], inputs[:, 1, drive], inputs[:, 2, drive] = line[:-1:2], line[1::2], line[2::2]
        assert self.model.run(self.state, inputs) == steps
        self.torque = torque
        return self

    @property
    def taus(self) -> list[float]:
        """What the brakes put on the shaft."""
        return [float(x) for x in self.state.tau]

    @property
    def w(self) -> float:
        return float(self.state.u[0])


@orders
def test_the_weaker_of_two_brakes_is_at_its_limit_until_both_slide(order: int) -> None:
    run = Run(braked_shaft((10.0, 30.0)), order).ramp(19.0, 19)
    assert run.taus == pytest.approx([-9.5, -9.5], abs=1e-12)
    run.ramp(30.0, 11)
    assert run.taus == pytest.approx([-10.0, -20.0], abs=1e-9) and run.w == 0.0
    run.ramp(39.9, 17)
    assert run.taus == pytest.approx([-10.0, -29.9], abs=1e-9) and run.w == 0.0
    rate = 10.1 / (13 * H)
    run.ramp(50.0, 13)
    # J w' = T - 40 from where T = 40, inside a step
    assert run.w == pytest.approx(10.0**2 / (2.0 * rate * J), rel=1e-9)
    assert run.state.energies["friction"].min() > 0.0


@orders
@pytest.mark.parametrize(("limits", "taus"), [((10.0, 30.0), [-10.0, -20.0]), ((20.0, 30.0), [-15.0, -15.0])])
def test_two_brakes_that_stop_a_shaft_together_hold_it_with_the_least_norm(
    limits: tuple[float, float], taus: list[float], order: int
) -> None:
    """From w0 against a torque of 30 the shaft stops inside a step; a brake at its limit leaves the rest."""
    run = Run(braked_shaft(limits, w0=0.0517), order)
    run.torque = 30.0
    run.ramp(30.0, 40)
    assert run.taus == pytest.approx(taus, abs=1e-9) and run.w == 0.0
    angle = 0.0517**2 * J / (2.0 * (sum(limits) - 30.0))
    assert run.state.energies["friction"] == pytest.approx([limit * angle for limit in limits], rel=1e-9)


@orders
def test_a_brake_at_its_limit_takes_less_when_the_torque_turns_round(order: int) -> None:
    run = Run(braked_shaft((10.0, 30.0)), order).ramp(35.0, 31)
    for torque, steps in ((5.0, 17), (-15.0, 13), (-30.0, 11), (-39.9, 7)):
        run.ramp(torque, steps)
        a, b = run.taus
        assert a + b == pytest.approx(-torque, abs=1e-9) and abs(a) <= 10.0 + 1e-9 and abs(b) <= 30.0 + 1e-9
        assert run.w == 0.0
    rate = 10.1 / (13 * H)
    run.ramp(-50.0, 13)
    assert run.w == pytest.approx(-(10.0**2) / (2.0 * rate * J), rel=1e-9)
    assert run.taus == pytest.approx([10.0, 30.0], abs=1e-9)


@orders
def test_brakes_with_a_peak_give_way_at_their_peaks_and_slide_with_less(order: int) -> None:
    """Static limits of 13 and 39 together hold 52, also where the weaker one is at its limit long before."""
    run = Run(braked_shaft((10.0, 30.0), peak=1.3), order).ramp(51.9, 47)
    assert run.taus == pytest.approx([-13.0, -38.9], abs=1e-9) and run.w == 0.0
    rate = 8.1 / (13 * H)
    run.ramp(60.0, 13)
    # from T = 52 on J w' = T - 40
    span = 8.0 / rate
    assert run.w == pytest.approx((12.0 * span + 0.5 * rate * span**2) / J, rel=1e-9)


def test_two_brakes_whose_friction_rises_steeply_are_one_with_both_capacities() -> None:
    """Where the torque is found with the speed: on one shaft they have one slip. A torque of 25 Nm drives it to where
    they carry that."""
    rising = [[0.0, 0.2], [0.5, 1.0], [2.0, 1.0]]
    found = []
    for limits in ((10.0, 30.0), (40.0,)):
        d = Driveline("steep")
        d.add("shaft", Inertia(J=0.001, w0=0.1))
        d.add("drive", Torque())
        d.connect("drive.flange", "shaft.flange_a")
        for name, limit in zip("ab", limits, strict=False):
            d.add(name, Brake(fn_max=limit, mue_pos=rising))
            d.connect(f"{name}.flange_a", "shaft.flange_a")
        compiled = compile_driveline(d)
        model = KernelModel(replace(compiled.arrays, order=2), H, "generic")
        state = KernelState(model)
        inputs = np.ones((1, len(compiled.input_names)))
        inputs[0, compiled.input_index("drive.tau")] = 25.0
        motion = []
        for _ in range(30):
            assert model.run(state, inputs) == 1
            motion.append([float(state.u[0]), *(float(x) for x in state.tau)])
        assert state.counters["steep_unsolved"] == 0
        found.append(np.array(motion))
    both, one = found
    np.testing.assert_allclose(both[:, 0], one[:, 0], rtol=1e-9)
    np.testing.assert_allclose(both[:, 1] + both[:, 2], one[:, 1], rtol=1e-9)
    np.testing.assert_allclose(both[:, 2], 3.0 * both[:, 1], rtol=1e-9)
    assert both[-1] == pytest.approx([0.265625, -6.25, -18.75], rel=2e-2)


@pytest.mark.parametrize("w0", [1e-3, 1e-4])
@pytest.mark.parametrize("swings", [0.3, 0.8])
def test_what_is_left_of_a_slip_that_comes_to_rest_beside_a_spring_counts_as_heat(swings: float, w0: float) -> None:
    """The search for the length that ends at the event leaves up to 1e-5 rad/s: seen in motions as small as this."""
    inertia = 1e-3
    d = Driveline("small", order=2)
    d.add("shaft", Inertia(J=inertia, w0=w0))
    d.add("spring", SpringDamper(c=inertia * (swings / H) ** 2, d=0.0))
    d.add("wall", Fixed())
    d.add("brake", Brake(fn_max=0.15 * w0 * inertia * swings / H, mue_pos=1.0))
    d.connect("wall.flange", "spring.flange_a")
    d.connect("spring.flange_b", "shaft.flange_a")
    d.connect("shaft.flange_b", "brake.flange_a")
    result = Simulation(d, h=H).run(0.05, inputs={"brake.f_normalized": 1.0})
    assert result.counters["events"] >= 4
    assert abs(result.energy().residual) < 1e-14 * 0.5 * inertia * w0**2
