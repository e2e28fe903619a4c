"""Masses on gaps with exponents, resolved or not, with brakes and clutches: nothing gives energy that has none."""

from __future__ import annotations

import numpy as np
import pytest
from gap_trains import run

#: 500 drivelines, each with both orders, in blocks; from day to day the first four
BLOCKS, BLOCK, STEPS, DAILY = 20, 25, 100, 4
#: of the energy turned over, as in test_stiff_trains.py
CLOSES = 5e-4
#: the same for heat that friction gives back: rounding
ROUNDING = 1e-12
#: the same for dampers and gaps, whose heat the impulse step finds by rounds
FOUND = 1e-7


@pytest.mark.proof
@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("block", [pytest.param(k, marks=() if k < DAILY else pytest.mark.long) for k in range(BLOCKS)])
def test_energy_closes_and_heat_never_falls(block: int, order: int) -> None:
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        books = run(seed, order, STEPS)
        where = f"driveline {seed}, order {order}: {books.counters}"
        assert np.isfinite(books.stored).all() and np.isfinite(books.work).all(), where
        assert books.residual <= CLOSES * books.turned_over, f"{books.residual} of {books.turned_over} J, {where}"
        assert books.given_back <= ROUNDING * books.turned_over, f"{books.given_back} J given back, {where}"
        assert np.diff(books.dampers).min() >= -FOUND * books.turned_over, f"{np.diff(books.dampers).min()} J, {where}"
        assert books.counters["negative_heat"] == 0, where
