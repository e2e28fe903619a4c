"""Means over intervals that are handed to slower models, against the momentum that the driveline really took."""

from __future__ import annotations

import numpy as np
import pytest

from torqueloop.core.components import Inertia, Speed, SpringDamper, Torque
from torqueloop.core.controls import run_controlled
from torqueloop.core.controls.loop import Wired
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import UnknownNameError
from torqueloop.core.signals import Sine
from torqueloop.core.simulate.offline import Simulation


class Listener:
    """A controller that only remembers what it is told."""

    reads = ("torque", "sample")
    writes = ()

    def __init__(self) -> None:
        self.told: list[tuple[float, float]] = []

    def step(self, t: float, measured: dict[str, float]) -> dict[str, float]:
        self.told.append((measured["torque"], measured["sample"]))
        return {}


def shaken(order: int, J: float, c: float, d: float) -> Driveline:
    """A body on a shaft whose other end turns as it is told."""
    line = Driveline("shaken", order=order)
    line.add("end", Speed(exact=True))
    line.add("shaft", SpringDamper(c=c, d=d, phi_rel0=0.01))
    line.add("body", Inertia(J=J))
    line.add("pull", Torque())
    line.connect("end.flange", "shaft.flange_a")
    line.connect("shaft.flange_b", "body.flange_a")
    line.connect("pull.flange", "body.flange_b")
    return line


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize(("J", "c", "d"), [(0.05, 5000.0, 2.0), (1e-4, 5000.0, 20.0), (2.0, 2e4, 0.0)])
@pytest.mark.parametrize("ticks", [1, 7, 20])
def test_the_mean_of_a_shaft_is_the_impulse_its_body_took(order: int, J: float, c: float, d: float, ticks: int) -> None:
    """J*(change of w) = -impulse of the shaft in every interval, resolved by the step or not."""
    listener = Listener()
    sim = Simulation(shaken(order, J, c, d), h=1e-3)
    # 170 Hz are 6 ticks: an error of 1e-1 in the driven motion at order 2
    f = 170.0 if order == 4 else 20.0
    sim.set_input("end.w_ref", Sine(amplitude=3.0, f=f))
    period, n = 1e-3 * ticks, 280 // ticks
    wired = Wired("car", listener, {"torque": "shaft.tau", "sample": "shaft.tau"}, means=frozenset({"torque"}))
    run = run_controlled(sim, [wired], T=n * period, period=period)
    w = run.result["body.w"][::ticks][:n]
    mean, sample = np.array(listener.told).T
    took = -J * np.diff(w) / period
    # largest torque of spring and damper where the body stands
    scale = 3.0 * d + 3.0 / (2.0 * np.pi * f) * c
    # what the step does not resolve it damps: up to a fiftieth of a tick's impulse, whatever the length of the interval
    most = 2e-3 if order == 2 else 1e-4 if 1e-3 * d < 2.0 * J else 0.02 / ticks
    np.testing.assert_allclose(mean[1:], took, rtol=0, atol=most * scale)
    if order == 4 and 1e-3 * d < 2.0 * J:
        assert np.abs(sample[1:] - took).max() > 0.1 * scale, "a sample is another number"


class Body:
    """A body beside the driveline, as a vehicle is: the mean torque of the period that has passed in, its speed at the
    end of the coming one out. The means of three periods in a row lie on a straight line."""

    reads = ("torque",)
    writes = ("w",)

    def __init__(self, J: float, period: float) -> None:
        self.J, self.period, self.w = J, period, 0.0
        self._last: float | None = None

    def step(self, t: float, measured: dict[str, float]) -> dict[str, float]:
        now = measured["torque"]
        last = now if self._last is None else self._last
        self._last = now
        self.w += self.period / self.J * (2.0 * now - last)
        return {"w": self.w}


@pytest.mark.parametrize("f", [11.0, 23.0])
def test_an_exchange_of_means_is_of_second_order_and_keeps_momentum(f: float) -> None:
    """Two bodies on a spring, one of them beside the driveline: closed form of their motion."""
    J, other = 0.3, 0.8
    c = (2.0 * np.pi * f) ** 2 * J * other / (J + other)
    errors, lost = [], []
    for period in (8e-3, 4e-3, 2e-3, 1e-3):
        sim = Simulation(shaken(4, J, c, 0.0), h=0.5e-3)
        wired = Wired("other", Body(other, period), {"torque": "shaft.tau"}, {"w": "end.w_ref"}, frozenset({"w"}),
                      frozenset({"torque"}))  # fmt: skip
        run = run_controlled(sim, [wired], T=0.2, period=period)
        t, w = run.result.time[:: round(period / 0.5e-3)][1:], run.commands["other.w"]
        # the spring pushes the body back, relaxed at 0.01 rad: q = 0.01*(1 - cos(2 pi f t))
        exact = -0.01 * 2.0 * np.pi * f * np.sin(2.0 * np.pi * f * t) * J / (J + other)
        errors.append(np.abs(w - exact).max())
        lost.append(np.abs(J * run.result["body.w"][:: round(period / 0.5e-3)][1:] + other * w).max())
    assert all(a > 3.3 * b for a, b in zip(errors, errors[1:], strict=False)), errors
    assert all(a > 3.3 * b for a, b in zip(lost, lost[1:], strict=False)), lost


def test_the_mean_of_another_output_is_that_of_its_ticks() -> None:
    listener = Listener()
    sim = Simulation(shaken(4, 0.5, 500.0, 2.0), h=1e-3)
    sim.set_input("pull.tau", Sine(amplitude=7.0, f=3.0))
    wired = Wired("car", listener, {"torque": "body.w", "sample": "body.phi"}, means=frozenset({"torque"}))
    run_controlled(sim, [wired], T=1.0, period=0.05)
    mean, angle = np.array(listener.told).T
    np.testing.assert_allclose(mean[1:], np.diff(angle) / 0.05, rtol=0, atol=1e-4 * np.abs(mean).max())


@pytest.mark.parametrize(("reads", "means"), [
    ({"torque": 1.0, "sample": "shaft.tau"}, {"torque"}), ({"torque": "shaft.tau", "sample": 0.0}, {"tork"}),
])  # fmt: skip
def test_a_mean_of_what_is_no_output_is_refused(reads: dict[str, str | float], means: set[str]) -> None:
    wired = Wired("car", Listener(), reads, means=frozenset(means))
    with pytest.raises(UnknownNameError, match="mean"):
        run_controlled(Simulation(shaken(2, 1.0, 100.0, 1.0), h=1e-3), [wired], T=0.1, period=0.01)
