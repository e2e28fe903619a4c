"""Signals: values, one-sided limits at jumps, and the times of their events."""

from __future__ import annotations

import math

import numpy as np
import pytest

from torqueloop.core.describe.errors import RangeError, TableError
from torqueloop.core.signals import Constant, Difference, Function, Product, Pulse, Ramp, Sine, Step, Table, as_signal


def test_step_has_two_limits_at_its_jump() -> None:
    step = Step(height=3.0, offset=1.0, startTime=0.4)
    assert (step.before(0.4), step.after(0.4), step.value(0.4)) == (1.0, 4.0, 4.0)
    assert (step.value(0.399), step.value(0.401)) == (1.0, 4.0)
    assert step.event_times(0.0, 1.0) == [0.4]
    assert step.event_times(0.4, 1.0) == []


def test_ramp_is_continuous_with_two_kinks() -> None:
    ramp = Ramp(height=2.0, duration=0.1, offset=1.0, startTime=2.0)
    assert ramp.event_times(0.0, 5.0) == [2.0, 2.1]
    assert ramp.before(2.0) == ramp.after(2.0) == 1.0
    assert ramp.value(2.05) == pytest.approx(2.0)
    assert ramp.value(9.0) == 3.0


def test_sine_starts_at_its_start_time() -> None:
    sine = Sine(amplitude=2.0, f=0.25, phase=math.pi / 2, offset=1.0, startTime=1.0)
    assert (sine.before(1.0), sine.after(1.0)) == (1.0, 3.0)
    assert sine.value(2.0) == pytest.approx(1.0)
    assert sine.event_times(0.0, 3.0) == [1.0]


def test_pulse_follows_its_period_and_stops_after_nperiod() -> None:
    pulse = Pulse(amplitude=2.0, width=50.0, period=1.3, offset=1.0, startTime=0.3)
    assert pulse.event_times(0.0, 2.0) == pytest.approx([0.3, 0.95, 1.6])
    for edge, left, right in zip(pulse.event_times(0.0, 3.0), (1.0, 3.0, 1.0), (3.0, 1.0, 3.0), strict=False):
        assert (pulse.before(edge), pulse.after(edge)) == (left, right)
    assert pulse.value(0.0) == 1.0
    twice = Pulse(amplitude=1.0, width=25.0, period=1.0, nperiod=2)
    assert [twice.value(t) for t in (0.1, 0.5, 1.1, 1.5, 2.1)] == [1.0, 0.0, 1.0, 0.0, 0.0]
    assert twice.event_times(-1.0, 9.0) == pytest.approx([0.0, 0.25, 1.0, 1.25])


def test_table_is_linear_between_points_and_jumps_where_a_time_is_given_twice() -> None:
    table = Table([(0.0, 0.0), (1.0, 2.0), (1.0, 5.0), (2.0, 5.0)])
    assert table.value(0.25) == pytest.approx(0.5)
    assert (table.before(1.0), table.after(1.0)) == (2.0, 5.0)
    assert (table.value(-3.0), table.value(9.0)) == (0.0, 5.0)
    assert table.event_times(0.0, 2.0) == [1.0]
    assert table == Table([(0.0, 0.0), (1.0, 2.0), (1.0, 5.0), (2.0, 5.0)])


@pytest.mark.parametrize("side", [-1, 0, 1])
def test_a_stretch_between_two_points_of_a_table_has_the_bits_of_a_longer_one(side: int) -> None:
    """Sampled between two points, before and behind all: the same numbers as in one go over all of them."""
    table = Table([[0.1, -3.0], [0.7, 1.0 / 3.0], [0.7, 5.0], [1.3, 5.0], [2.9, -0.7]])
    t = np.sort(np.concatenate([np.linspace(-0.5, 3.5, 997), table.t, np.nextafter(table.t, -9.0)]))
    whole = table.sample(t, side)
    assert np.array_equal(whole, np.concatenate([table.sample(t[k : k + 1], side) for k in range(len(t))]))
    for a, b in ((0.2, 0.6), (0.7, 0.7), (0.9, 1.2), (3.0, 3.5), (-0.5, 0.0)):
        part = (t >= a) & (t <= b)
        assert np.array_equal(table.sample(t[part], side), whole[part])
    assert table.sample(np.array([0.7]), side)[0] == pytest.approx(1.0 / 3.0 if side < 0 else 5.0, rel=1e-15)


def test_products_and_differences_join_the_events_of_both() -> None:
    a, b = Step(startTime=0.5), Step(height=-1.0, offset=1.0, startTime=0.7)
    product, difference = a * b, 1.0 - a
    assert isinstance(product, Product) and isinstance(difference, Difference)
    assert product.event_times(0.0, 1.0) == [0.5, 0.7]
    assert [product.value(t) for t in (0.4, 0.6, 0.8)] == [0.0, 1.0, 0.0]
    assert (difference.before(0.5), difference.after(0.5)) == (1.0, 0.0)


def test_numbers_and_functions_are_signals() -> None:
    assert as_signal(2) == Constant(2.0)
    assert as_signal(lambda t: 3.0 * t).value(2.0) == 6.0
    assert Function(abs, events=[0.5]).event_times(0.0, 1.0) == [0.5]
    with pytest.raises(RangeError, match="is not a signal"):
        as_signal("fast")


@pytest.mark.parametrize("signal", [Step(startTime=0.3), Pulse(period=0.7, startTime=0.1), Ramp(startTime=0.2), Sine()])
def test_arrays_and_single_times_agree(signal) -> None:
    t = np.linspace(-0.5, 2.0, 101)
    assert signal.sample(t, +1).tolist() == [signal.after(v) for v in t]
    assert signal.sample(t, -1).tolist() == [signal.before(v) for v in t]


def test_signals_that_make_no_sense_are_refused() -> None:
    with pytest.raises(RangeError, match="duration = 0"):
        Ramp(duration=0)
    with pytest.raises(RangeError, match="width = 100"):
        Pulse(width=100)
    with pytest.raises(TableError, match="time goes back at row 3"):
        Table([(0, 0), (2, 0), (1, 0)])
    with pytest.raises(TableError, match=r"given three times \(row 3\)"):
        Table([(0, 0), (0, 1), (0, 2)])
