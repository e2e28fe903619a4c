"""Friction in series with springs and dampers, without inertia between, in either order.

Reference: SciPy with located events (serial_friction.py); a small inertia in place of none.
"""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("scipy", reason="the reference needs SciPy (extra `dev`)")

from built_steps import same_bits, scratch_suffices
from serial_friction import Case, Reference, driveline, energy_left_open, inputs, stepped

from torqueloop.core.simulate.offline import Simulation

TIMES = np.arange(1001) * 1e-3
CASES = {
    "spring": Case(),
    "spring and damper": Case(d=2.0),
    "spring, peak": Case(peak=1.3),
    "spring and damper, peak": Case(d=2.0, peak=1.3),
    "spring, capacity that changes": Case(swing=5.0),
    "spring and damper, capacity that changes": Case(d=2.0, swing=5.0),
    "soft spring, capacity that changes": Case(c=30.0, swing=9.0),
    "slips at the start": Case(d=2.0, w0=20.0),
}
#: what the step does not resolve: swings of 380 rad/s
STIFF = {"stiff spring": Case(c=5e4), "stiff spring and damper": Case(c=5e4, d=5.0)}
both_orders = pytest.mark.parametrize("order", [2, 4])


@pytest.mark.parametrize("turned", [False, True], ids=["clutch first", "spring first"])
@pytest.mark.parametrize(("order", "bound"), [(2, 3e-4), (4, 2e-6)])
@pytest.mark.parametrize("name", CASES)
def test_motion_torque_and_heat_are_those_of_the_reference(name: str, order: int, bound: float, turned: bool) -> None:
    case = CASES[name]
    run = Simulation(driveline(case, order, turned), h=1e-3).run(1.0, inputs=inputs(case))
    right = Reference(case, TIMES)
    assert right.events >= 4 and {*right.mode} == {-1.0, 0.0, 1.0}
    for found, expected in (
        (run["a.w"], right.w_a),
        (run["b.w"], right.w_b),
        (run["k.heat"], right.heat),
        (abs(run["k.tau"]), abs(right.tau)),
    ):
        assert np.abs(found - expected).max() < bound * np.ptp(expected)
    assert run.counters["fallbacks"] == 0
    assert energy_left_open(run) < (1e-4 if order == 2 else 1e-7)
    assert min(np.diff(run[heat]).min() for heat in ("k.heat", "s.loss")) >= 0.0


@pytest.mark.parametrize("name", STIFF)
@both_orders
def test_stiff_springs_make_no_energy(name: str, order: int) -> None:
    run = Simulation(driveline(STIFF[name], order), h=1e-3).run(1.0, inputs=inputs(STIFF[name]))
    assert energy_left_open(run) < 1e-12 and run.counters["fallbacks"] == 0
    assert min(np.diff(run[heat]).min() for heat in ("k.heat", "s.loss")) >= 0.0


def test_a_small_inertia_between_moves_likewise() -> None:
    line, signals = stepped(4, 2.0)
    run = Simulation(line, h=1e-3).run(0.3, inputs=signals)
    small = Simulation(stepped(4, 2.0, J_m=1e-7)[0], h=1e-5).run(0.3, inputs=signals)
    for name in ("a.w", "b.w", "e.w"):
        assert np.abs(run[name] - small[name][::100]).max() < 2e-6 * np.ptp(small[name])


@pytest.mark.parametrize(("order", "least"), [(2, 1.7), (4, 3.5)])
def test_the_order_holds_across_its_events(order: int, least: float) -> None:
    case = CASES["spring and damper"]
    errors = []
    for h in (2e-3, 0.5e-3):
        run = Simulation(driveline(case, order), h=h).run(1.0, inputs=inputs(case))
        every = max(1, round(1e-3 / h))
        right = Reference(case, TIMES if h < 1e-3 else TIMES[::2])
        errors.append(np.abs(run["b.w"][::every] - right.w_b).max())
    assert np.log2(errors[0] / errors[1]) / 2.0 > least


@pytest.mark.proof
@pytest.mark.parametrize("d", [0.0, 2.0])
@both_orders
def test_a_precompiled_step_has_the_bits_of_the_generic_one(order: int, d: float) -> None:
    signals = stepped(order, d)[1]
    same_bits(lambda order: stepped(order, d)[0], order, signals, 1200)


@both_orders
def test_scratch_memory_is_given_back_and_suffices(order: int) -> None:
    line, signals = stepped(order, 2.0)
    scratch_suffices(line, signals, 1.0)
