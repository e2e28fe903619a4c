"""Shafts without inertia between springs and dampers, with friction and clearances elsewhere in the driveline.

Reference: finer steps, and a small inertia in place of none.
"""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from built_steps import same_bits, scratch_suffices
from relaxing_lines import PRESSED, clutched, energy

from torqueloop.core.simulate.offline import Simulation
from torqueloop.core.simulate.results import Result

Array = np.ndarray
orders = pytest.mark.parametrize("order", [2, 4])


def speeds(run: Result, every: int) -> Array:
    return np.array([run[f"{name}.w"][::every] for name in "abcg"])


def test_friction_and_clearances_beside_it() -> None:
    fine = Simulation(clutched(4), h=1e-5).run(1.0, inputs=PRESSED)
    found = Simulation(clutched(4), h=1e-3).run(1.0, inputs=PRESSED)
    assert np.abs(speeds(found, 1) - speeds(fine, 100)).max() < 1e-3
    small = Simulation(clutched(4, Jm=1e-7), h=5e-6).run(1.0, inputs=PRESSED)
    assert np.abs(speeds(small, 200) - speeds(fine, 100)).max() < 1e-5
    assert {int(mode) for mode in found["brake.mode"]} >= {0, 2} and np.ptp(found["e.regime"]) > 0


@pytest.mark.parametrize(("order", "bound"), [(2, 2e-6), (4, 1e-6)])
@pytest.mark.parametrize("stiff", [1.0, 1e2, 1e4, 1e6])
@pytest.mark.parametrize("damping", [1e-3, 1.0, 1e3])
def test_friction_beside_it_makes_no_energy_however_stiff(
    order: int, bound: float, stiff: float, damping: float
) -> None:
    run = Simulation(clutched(order, stiff, damping), h=1e-3).run(1.0, inputs=PRESSED)
    stored, heat = energy(run)
    assert np.ptp(stored + heat) < bound * stored[0]
    for name in ("k.heat", "brake.heat"):
        assert np.diff(run[name]).min() >= 0.0
    for name in ("s1.loss", "s2.loss", "e.loss"):  # of three points: as without a junction
        assert np.diff(run[name]).min() > (-1e-13 if order == 2 else -2e-8) * stored[0]
    assert run.counters["negative_heat"] == 0
    assert np.abs(run["s1.tau"] - run["s2.tau"]).max() < 1e-10 * np.abs(run["s1.tau"]).max() + 1e-12 * stiff


@pytest.mark.proof
@orders
def test_a_precompiled_step_has_the_bits_of_the_generic_one(order: int) -> None:
    same_bits(clutched, order, PRESSED, 600)


@orders
def test_scratch_memory_is_given_back_and_suffices(order: int) -> None:
    scratch_suffices(clutched(order, 1e4), PRESSED, 1.0)


@orders
def test_a_state_that_is_put_back_goes_on_to_the_bit(order: int) -> None:
    simulation = Simulation(clutched(order), h=1e-3)
    for key, signal in PRESSED.items():
        simulation.set_input(key, signal)
    for _ in range(137):
        simulation.step()
    other = pickle.loads(pickle.dumps(simulation))
    for _ in range(200):
        simulation.step()
        other.step()
        assert simulation.hash() == other.hash()
