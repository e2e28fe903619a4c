"""What is counted of a link, against a second count of the same messages."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from torqueloop.hil.link.messages import StateMessage, StepMessage
from torqueloop.hil.link.stats import AgeStatistics, CouplingResidual, StampChecker


@pytest.mark.parametrize(("low", "high"), [(3e-6, 4e-4), (1e-4, 2e-1), (2e-7, 5e-5)])
def test_ages_are_counted_with_their_percentiles_in_milliseconds(low: float, high: float) -> None:
    """A percentile is the upper edge of its class, of which four are an octave; never above the largest age."""
    ages = np.exp(np.random.default_rng(5).uniform(math.log(low), math.log(high), 997))
    statistics = AgeStatistics()
    for age in ages:
        statistics.add(float(age))
    found = statistics.report()
    assert (found.count, found.max_ms) == (997, pytest.approx(1e3 * ages.max()))
    for q, told in ((0.5, found.p50_ms), (0.99, found.p99_ms), (0.9, statistics.quantile_ms(0.9))):
        exact = 1e3 * float(np.quantile(ages, q, method="inverted_cdf"))
        edge = 1e-3 * 2 ** (math.ceil(4 * math.log2(max(exact, 1e-3) / 1e-3)) / 4)
        assert told == pytest.approx(min(edge, 1e3 * ages.max()), rel=1e-9), q
    assert AgeStatistics().report().p99_ms == 0.0


def test_the_largest_age_bounds_every_percentile() -> None:
    statistics = AgeStatistics()
    statistics.add(4.1e-3)
    assert statistics.report().p50_ms == statistics.report().p99_ms == pytest.approx(4.1)


def test_the_last_class_of_ages_has_all_that_are_older() -> None:
    statistics = AgeStatistics()
    for age in (5000.0, 7000.0, 9000.0):
        statistics.add(age)
    assert statistics.report().p50_ms == pytest.approx(1e-3 * 2 ** (119 / 4)) and statistics.report().max_ms == 9e6


@pytest.mark.parametrize("stride", [1, 5, None])
def test_numbers_of_messages_are_counted_as_a_second_reader_counts_them(stride: int | None) -> None:
    """Numbers of a link that loses, repeats and reorders, each a multiple of the stride."""
    rng = np.random.default_rng(3)
    every = stride or 1
    sent = [int(k) * every for k in range(400) if rng.random() > 0.2]
    for at in rng.integers(1, len(sent) - 1, 40):
        sent[at], sent[at + 1] = sent[at + 1], sent[at]
    sent = [n for n in sent for _ in range(2 if rng.random() < 0.1 else 1)]
    wanted: Counter[str] = Counter()
    newest = None
    checker = StampChecker(stride)
    for number in sent:
        if newest is None or number > newest:
            wanted["accepted"] += 1
            missing = 0 if newest is None or stride is None else len(range(newest + stride, number, stride))
            wanted["lost"] += missing
            wanted["gap"] += missing > 0
            kind, newest = True, number
        else:
            wanted["duplicate" if number == newest else "out_of_order"] += 1
            kind = False
        assert checker.check(number) == kind
    assert checker.counters() == {name: wanted[name] for name in checker.counters()}
    assert all(wanted[name] for name in ("duplicate", "out_of_order"))


def test_a_number_is_believed_up_to_the_largest_jump() -> None:
    checker = StampChecker()
    assert checker.believed(10**9)
    checker.jump_max = 10
    assert checker.believed(10) and not checker.believed(11)
    checker.check(7)
    assert checker.believed(17) and not checker.believed(18)
    checker.forget()
    assert checker.newest is None and not checker.believed(17)


def test_the_coupling_is_the_difference_of_speeds_at_the_same_step() -> None:
    """Speed of the rig less that of the vehicle at the step of its answer, whenever it comes; the work of the impulse
    between two answers on that difference, and on the rig's speed."""
    own = {step: 10.0 + 0.3 * step for step in range(6)}
    answers = {0: 10.05, 2: 10.4, 5: 11.6, 3: 10.9}
    residual = CouplingResidual(history=5)
    for step, speed in own.items():
        residual.sent(StepMessage(step, t=0.0, F_wheel=0.0, I_wheel=2.0 * step**2, speed=speed, s=0.0, brake=0.0))
    for step, speed in answers.items():
        answer = StateMessage(step, own_step=77, t=0.0, speed=speed, a=0.0, F=0.0, F_hold=0.0, grade=0.0)
        assert (residual.received(answer) is None) == (step == 0), "the oldest of six is forgotten"
    order = [2, 5, 3]
    apart = np.array([own[step] - answers[step] for step in order])
    impulse = np.diff([2.0 * step**2 for step in order])
    told = residual.report()
    assert told.samples == 3 and told.max_mps == pytest.approx(np.abs(apart).max()) and told.max_step == 2
    assert told.rms_mps == pytest.approx(math.sqrt(np.mean(apart**2)))
    assert told.energy_J == pytest.approx(float(np.sum(impulse * apart[1:])))
    assert told.turned_over_J == pytest.approx(float(np.sum(np.abs(impulse * [own[step] for step in order[1:]]))))
