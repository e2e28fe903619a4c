"""Springs resolved or not, clearances, clutches, brakes, dampers: nothing gives energy that has none."""

from __future__ import annotations

import numpy as np
import pytest
from stiff_trains import Books, H, run, stiff_train

from torqueloop.core.analyse.step_work import most_evaluations
from torqueloop.core.simulate.offline import Simulation

#: 500 drivelines, each with both orders, in blocks; from day to day the first ten
BLOCKS, BLOCK, STEPS, DAILY = 20, 25, 100, 10
#: of the energy turned over, by order: what cuts of resolved springs leave open (8e-6), and rounding where they are
#: stiffer than 1e11 N.m/rad, in matrices with h^4 c^2 (1.3e-4); half of all are within 3e-14
CLOSES = {2: 2e-5, 4: 2e-4}
#: the same for heat that friction gives back: rounding
ROUNDING = 1e-12


def check(seed: int, order: int, split: bool = False) -> Books:
    """One driveline."""
    books = run(seed, order, STEPS, split)
    where = f"driveline {seed}, order {order}, split {split}: {books.counters}"
    assert np.isfinite(books.stored).all() and np.isfinite(books.work).all(), where
    assert books.residual <= CLOSES[order] * books.turned_over, f"{books.residual} of {books.turned_over} J, {where}"
    assert books.given_back <= ROUNDING * books.turned_over, f"{books.given_back} J given back, {where}"
    assert books.counters["negative_heat"] == 0, where
    return books


@pytest.mark.proof
@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("block", [pytest.param(k, marks=() if k < DAILY else pytest.mark.long) for k in range(BLOCKS)])
@pytest.mark.parametrize("split", [False, True], ids=["whole", "split"])
def test_energy_closes_and_friction_only_takes(block: int, order: int, split: bool) -> None:
    """split: each spring and damper is two in series, without an inertia between them."""
    runs = [check(seed, order, split) for seed in range(block * BLOCK, (block + 1) * BLOCK)]
    total = {name: sum(r.counters[name] for r in runs) for name in ("events", "fallbacks", "refused")}
    steps = BLOCK * STEPS
    print(f"order {order}, block {block}: {total} in {steps} steps, "
          f"{100.0 * total['fallbacks'] / steps:.1f} % of the steps fell back")  # fmt: skip
    assert total["events"] > 0
    # each fallback is counted once a step at most
    assert total["fallbacks"] <= steps


@pytest.mark.parametrize(("order", "seed"), [(2, 0), (2, 7), (2, 15), (4, 7), (4, 15), (4, 28)])
def test_no_step_makes_more_evaluations_than_the_bound_of_its_model(order: int, seed: int) -> None:
    """The drivelines of seeds 0 to 39 whose steps work most: searches for events fill a third of the bound and more."""
    simulation = Simulation(stiff_train(seed, order)[0], h=H, kernel="generic")
    total = [0]
    for _ in range(STEPS):
        simulation.step()
        total.append(simulation.state.counters["evals"])
    bound = most_evaluations(simulation.model)
    assert bound / 3 < max(np.diff(total)) <= bound
