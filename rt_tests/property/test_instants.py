"""Accelerations and modes of random drivelines against the dense reference at single instants."""

from __future__ import annotations

import numpy as np
import pytest
from compare import Pair, largest, split_is_open
from hypothesis import given
from hypothesis import strategies as st
from neutral import Train
from strategies import examples, trains

#: s: a step so short that nothing moves in it; what the kernel decides is the decision of this instant
SHORT = 1e-8
#: relative error of accelerations allowed
EXACT = 1e-9
orders = st.sampled_from([2, 4])


def agree(pair: Pair, unique: bool = True, exact: float = EXACT) -> None:
    """The kernel's modes are right, and its accelerations are those of the reference (where they are unique)."""
    seen = pair.seen()
    now = pair.instant(seen)
    answer = pair.answer_of(seen, now)
    assert not pair.dense.faults(now, answer), "the kernel's modes contradict each other"
    scale = 1.0 + largest(answer.a)
    np.testing.assert_allclose(seen.a, answer.a, rtol=0.0, atol=exact * scale)
    if not split_is_open(pair, seen, answer):
        size = 1.0 + largest(now.f, answer.tau)
        np.testing.assert_allclose(seen.tau, answer.tau, rtol=0.0, atol=10.0 * exact * size)
    if unique:
        other = pair.dense.boxed(now)
        assert not pair.dense.faults(now, other), "the reference contradicts itself"
        np.testing.assert_allclose(seen.a, other.a, rtol=0.0, atol=exact * scale)


def quiet_step(pair: Pair) -> None:
    """Step until no event falls into the step: after one, the accelerations of the rest of it are interpolated."""
    for _ in range(50):
        events = pair.sim.state.counters["events"]
        pair.sim.step()
        if pair.sim.state.counters["events"] == events:
            return


@pytest.mark.proof
@examples(150)
@given(train=trains(shafts=(2, 30), frictions=(1, 20)), order=orders)
def test_first_decision_agrees_with_bounded_least_squares(train: Train, order: int) -> None:
    pair = Pair(train, SHORT, order)
    pair.sim.step()
    agree(pair)


@examples(60)
@given(train=trains(shafts=(2, 8), frictions=(1, 6), peaks=True, slopes=True, at_rest=True), order=orders)
def test_first_decision_from_rest_with_peaks_is_one_of_all_consistent_ones(train: Train, order: int) -> None:
    pair = Pair(train, SHORT, order)
    pair.sim.step()
    agree(pair, unique=False, exact=1e-6)
    seen = pair.seen()
    answers = pair.dense.every_answer(pair.instant(seen))
    scale = 1.0 + largest(seen.a)
    assert any(largest(seen.a - answer.a) <= 1e-6 * scale for answer in answers)


@examples(25)
@given(train=trains(shafts=(2, 12), frictions=(1, 8), springs=False), order=orders, ticks=st.integers(1, 200))
def test_decisions_along_a_run_agree_with_bounded_least_squares(train: Train, order: int, ticks: int) -> None:
    pair = Pair(train, 1e-3, order)
    for _ in range(4):
        for _ in range(ticks):
            pair.sim.step()
        quiet_step(pair)
        agree(pair)


@examples(60)
@given(train=trains(shafts=(2, 8), frictions=(0, 4), losses=True), order=orders)
def test_first_decision_with_losses_is_one_of_all_consistent_ones(train: Train, order: int) -> None:
    pair = Pair(train, SHORT, order)
    pair.sim.step()
    agree(pair, unique=False, exact=1e-7)
    seen = pair.seen()
    now = pair.instant(seen)
    if np.prod([len(pair.dense.choices(now, i)) for i in range(len(pair.dense.laws))]) <= 600:
        answers = pair.dense.every_answer(now)
        assert any(largest(seen.a - answer.a) <= 1e-7 * (1.0 + largest(seen.a)) for answer in answers)


@pytest.mark.proof
@examples(40)
@given(
    train=trains(shafts=(2, 12), frictions=(0, 6), losses=True, springs=False), order=orders, ticks=st.integers(1, 100)
)
def test_decisions_with_losses_along_a_run_are_consistent(train: Train, order: int, ticks: int) -> None:
    pair = Pair(train, 1e-3, order)
    for _ in range(4):
        for _ in range(ticks):
            pair.sim.step()
        quiet_step(pair)
        agree(pair, unique=False)
