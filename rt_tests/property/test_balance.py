"""Torques on flanges and supports of random drivelines: they sum to zero, move the shafts, and are the multipliers."""

from __future__ import annotations

import numpy as np
from compare import Pair, largest, split_is_open
from hypothesis import given
from hypothesis import strategies as st
from laws import GROUND
from neutral import Train
from strategies import examples, trains

from torqueloop.core.analyse.analysis import flange_torques

orders = st.sampled_from([2, 4])
few = st.integers(1, 60)


@examples(40)
@given(train=trains(shafts=(2, 12), frictions=(1, 8), losses=True, springs=False), order=orders, ticks=few)
def test_torques_on_the_flanges_and_the_support_of_every_component_sum_to_zero(
    train: Train, order: int, ticks: int
) -> None:
    pair = Pair(train, 1e-3, order)
    result = pair.sim.run(1e-3 * ticks)
    on_shaft = np.zeros((len(train.J), len(result)))
    for name, element in train.named():
        torques = flange_torques(result, name)
        flanges = element.part()[1]
        size = 1.0 + largest(*torques.values())
        np.testing.assert_allclose(sum(torques.values()), 0.0, atol=1e-11 * size)
        if "support" in flanges and name.startswith(("gear", "lossy")):
            assert "support" in torques, "the torque on the housing is there to be seen"
        for flange, shaft in flanges.items():
            if shaft != GROUND and flange in torques:
                on_shaft[shaft] += torques[flange]
    # and they are what accelerates the shafts (the first sample has no accelerations yet)
    for k, J in enumerate(train.J):
        moved = J * result[f"s{k}.a"][1:]
        np.testing.assert_allclose(on_shaft[k, 1:], moved, rtol=0.0, atol=1e-8 * (1.0 + largest(on_shaft)))


@examples(40)
@given(train=trains(shafts=(3, 12), frictions=(1, 6), losses=True), order=orders, ticks=few)
def test_torques_of_gears_are_the_multipliers_of_the_dense_equations(train: Train, order: int, ticks: int) -> None:
    short = Pair(train, 1e-8, order)
    result = short.sim.run(ticks * 1e-8)
    seen = short.seen()
    now = short.instant(seen)
    answer = short.answer_of(seen, now)
    if split_is_open(short, seen, answer):
        return
    rows = iter(zip(train.constraints(), answer.lam, strict=True))
    for name, element in train.named():
        if not hasattr(element, "constraints"):
            continue
        constraint, multiplier = next(rows)
        first, shaft = next(iter(element.part()[1].items()))
        wanted = multiplier * constraint[shaft]
        if name in short.dense.names:
            k = short.dense.names.index(name)
            wanted += answer.tau[k] * short.dense.B[k][shaft]
        got = flange_torques(result, name)[first][-1]
        np.testing.assert_allclose(got, wanted, rtol=0.0, atol=1e-6 * (1.0 + largest(answer.lam, answer.tau)))
