"""All signals: their derivative is the slope of their values, their events are where value or slope jump."""

from __future__ import annotations

import math

import numpy as np
import pytest

from torqueloop.core import signals as sig
from torqueloop.core.describe.errors import RangeError, TableError

PTP = sig.kinematic_ptp([2.0, -1.0], [1.0], [4.0], startTime=0.2)
CURVED = sig.kinematic_ptp([0.1], [1.0], [4.0], startTime=0.2)[0]
TABLE = [(0.0, 0.0), (0.4, 2.0), (0.9, -1.0), (1.5, 0.5)]

SMOOTH = {
    "constant": sig.Constant(3.0),
    "sine": sig.Sine(amplitude=2.0, f=1.3, phase=0.4, offset=1.0),
    "sine from 0.3": sig.Sine(amplitude=2.0, f=1.3, offset=1.0, startTime=0.3),
    "cosine": sig.cosine(amplitude=2.0, f=0.7),
    "exp sine": sig.ExpSine(amplitude=2.0, f=1.7, damping=1.5, startTime=0.25),
    "exponentials": sig.Exponentials(outMax=2.0, riseTime=0.6, riseTimeConst=0.2, fallTimeConst=0.3, startTime=0.1),
    "ramp": sig.Ramp(height=3.0, duration=0.7, startTime=0.4),
    "clock": sig.clock(offset=1.0, startTime=0.5),
    "table": sig.Table(TABLE),
    "time table": sig.time_table(TABLE, offset=0.0, startTime=0.2),
    "periodic table": sig.time_table([(0.0, 1.0), (0.2, 3.0), (0.5, 1.0)], extrapolation="Periodic"),
    "trapezoid": sig.Trapezoid(amplitude=2.0, rising=0.2, width=0.3, falling=0.1, period=0.8, startTime=0.1),
    "two trapezoids": sig.Trapezoid(rising=0.2, width=0.3, falling=0.1, period=0.7, nperiod=2, startTime=0.1),
    "movement": PTP[0][0],
    "short movement": CURVED[0],
    "speed of a movement": PTP[1][1],
    "integral": sig.Integral(sig.Pulse(period=0.5, amplitude=2.0) * sig.Sine(f=2.0), k=0.5, y_start=1.0),
    "product": sig.Sine(f=1.5) * sig.Ramp(startTime=0.3),
    "quotient": sig.Sine(f=1.5) / (2.0 + sig.Ramp(startTime=0.3)),
    "sum": sig.Sine() + sig.Ramp() - 3.0 * sig.cosine(),
    "absolute": sig.absolute(sig.Sine(f=1.1)),
    "limited": sig.limited(sig.Sine(amplitude=2.0, f=1.1), -0.5, 1.5),
    "larger": sig.larger(sig.Sine(f=1.1), sig.Constant(0.3)),
    "applied": sig.Applied("Tanh", sig.Sine(amplitude=3.0)),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_derivative_is_the_slope_between_events(name: str) -> None:
    signal, h = SMOOTH[name], 1e-5
    slope = signal.derivative()
    t = np.linspace(0.0123, 1.987, 1009)
    events = np.array([*signal.event_times(0.0, 2.0), math.inf])
    t = t[np.abs(t[:, None] - events).min(axis=1) > 2.0 * h]
    assert len(t) > 900
    wanted = (signal.sample(t + h) - signal.sample(t - h)) / (2.0 * h)
    np.testing.assert_allclose(slope.sample(t), wanted, rtol=1e-6, atol=1e-6 * (1.0 + np.abs(wanted).max()))


@pytest.mark.parametrize("side", [-1, 0, 1])
@pytest.mark.parametrize("name", ["table", "time table", "periodic table", "trapezoid", "two trapezoids", "movement",
                                  "pulse", "two pulses", "saw tooth"])  # fmt: skip
def test_single_times_have_the_bits_of_many(name: str, side: int) -> None:
    """Steps without an event are sampled by blocks, the parts of a step cut at one time by time."""
    jumping = {
        "pulse": sig.Pulse(period=0.3, startTime=0.1, offset=0.7),
        "two pulses": sig.Pulse(period=0.3, width=30.0, nperiod=2),
        "saw tooth": sig.SawTooth(period=0.3),
    }
    signal = (SMOOTH | jumping)[name]
    events = np.array(signal.event_times(-1.0, 3.0))
    t = np.sort(np.concatenate([np.linspace(-0.5, 2.5, 401), events, np.nextafter(events, -9.0)]))
    single = np.concatenate([signal.sample(t[k : k + 1], side) for k in range(len(t))])
    np.testing.assert_array_equal(signal.sample(t, side), single)


@pytest.mark.parametrize("name", SMOOTH)
def test_every_kink_is_an_event_and_values_do_not_jump(name: str) -> None:
    signal = SMOOTH[name]
    slope = signal.derivative()
    t = np.linspace(0.0, 2.0, 4001)
    events = np.array([*signal.event_times(-1.0, 3.0), math.inf])
    jump = np.abs(np.diff(slope.sample(t)))
    ends = zip(t[:-1] - 1e-9, t[1:] + 1e-9, strict=True)
    smooth = np.array([not np.any((events >= a) & (events <= b)) for a, b in ends])
    scale = 1.0 + np.abs(slope.sample(t)).max()
    assert jump[smooth].max(initial=0.0) < 0.05 * scale
    for event in signal.event_times(0.0, 2.0):
        assert signal.before(event) == pytest.approx(signal.after(event), abs=1e-9)


@pytest.mark.parametrize(
    "signal",
    [sig.Step(startTime=0.5), sig.Pulse(period=0.3), sig.SawTooth(period=0.3), sig.Sine(phase=1.0, startTime=0.2),
     sig.Table([(0.0, 0.0), (1.0, 1.0), (1.0, 2.0)]), sig.Function(math.sin), PTP[0][2], sig.Sinc(),
     sig.Sine(startTime=0.2).derivative(), sig.Constant(2.0) * sig.Step(startTime=0.1)],
    ids=lambda s: type(s).__name__,
)  # fmt: skip
def test_what_jumps_or_is_unknown_has_no_derivative(signal: sig.Signal) -> None:
    with pytest.raises(RangeError, match="forces a motion needs one"):
        signal.derivative()


def test_a_jump_at_the_start_does_not_count() -> None:
    assert sig.Step(startTime=0.0).derivative() == sig.Constant(0.0)
    assert sig.cosine(f=1.0).derivative().value(0.25) == pytest.approx(-2.0 * math.pi)


def test_saw_tooth_and_trapezoid_have_modelicas_shape() -> None:
    saw = sig.SawTooth(amplitude=2.0, period=0.5, nperiod=2, offset=1.0, startTime=0.25)
    assert [saw.value(t) for t in (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 2.0)] == [1.0, 1.0, 2.0, 1.0, 2.0, 1.0, 1.0]
    assert saw.before(0.75) == 3.0 and saw.before(1.25) == 3.0
    assert saw.event_times(0.0, 9.0) == [0.25, 0.75, 1.25]
    shape = sig.Trapezoid(amplitude=2.0, rising=0.2, width=0.3, falling=0.1, period=1.0, offset=-1.0)
    assert [shape.value(t) for t in (0.0, 0.1, 0.35, 0.55, 0.8, 1.1)] == pytest.approx([-1.0, 0.0, 1.0, 0.0, -1.0, 0.0])
    square = sig.Trapezoid(width=0.25, period=0.5)
    assert (square.before(0.5), square.after(0.5), square.before(0.75), square.after(0.75)) == (0.0, 1.0, 1.0, 0.0)
    for one in ("rising", "width", "falling"):
        with pytest.raises(RangeError, match="rising, width or falling is negative"):
            sig.Trapezoid(**{"rising": 0.1, "width": 0.1, "falling": 0.1, one: -1e-9})
    with pytest.raises(RangeError, match="longer than period"):
        sig.Trapezoid(rising=0.5, width=0.6, period=1.0)


def test_time_table_starts_shifts_and_extrapolates_as_modelicas() -> None:
    rows = [(0.0, 1.0), (1.0, 3.0), (1.0, 0.0), (2.0, 1.0)]
    table = sig.time_table(rows, offset=10.0, startTime=0.5)
    assert [table.value(t) for t in (0.25, 0.5, 1.0, 1.5, 2.5, 3.5)] == [10.0, 11.0, 12.0, 10.0, 11.0, 12.0]
    assert table.before(1.5) == 13.0 and table.event_times(0.0, 9.0) == [0.5, 1.5, 2.5]
    # extrapolated before the first row when it starts earlier than that
    late = sig.time_table([(1.0, 1.0), (2.0, 3.0)])
    assert [late.value(t) for t in (0.0, 0.5, 1.5, 3.0)] == [-1.0, 0.0, 2.0, 5.0]
    held = sig.time_table([(0.0, 1.0), (2.0, 3.0)], extrapolation="HoldLastPoint", timeScale=0.5)
    assert [held.value(t) for t in (0.5, 1.0, 4.0)] == [2.0, 3.0, 3.0]
    stairs = sig.time_table([(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)], constant_segments=True)
    assert [stairs.value(t) for t in (0.5, 1.0, 1.5, 2.0, 7.0)] == [1.0, 3.0, 3.0, 5.0, 5.0]
    cycle = sig.time_table([(0.0, 1.0), (1.0, 3.0)], extrapolation="Periodic")
    assert [cycle.value(t) for t in (0.5, 1.5, 2.25)] == pytest.approx([2.0, 2.0, 1.5]) and cycle.before(1.0) == 3.0
    with pytest.raises(TableError, match="goes back"):
        sig.time_table([(1.0, 0.0), (0.0, 0.0)])


def test_movement_keeps_its_limits_and_all_axes_arrive_together() -> None:
    t = np.linspace(0.0, 4.0, 4001)
    for (q, qd, qdd), distance in zip(PTP, (2.0, -1.0), strict=True):
        assert q.value(9.0) == distance and q.value(0.0) == qd.value(9.0) == 0.0
        assert np.abs(qd.sample(t)).max() <= 1.0 + 1e-12 and np.abs(qdd.sample(t)).max() <= 4.0 + 1e-12
        assert q.knots == PTP[0][0].knots
    # 2 rad at 1 rad/s and 4 rad/s2: 2 s at full speed plus one ramp
    assert PTP[0][0].knots == pytest.approx((0.2, 0.45, 2.2, 2.45))
    # too short to reach full speed: two equal ramps
    assert np.diff(CURVED[0].knots) == pytest.approx([math.sqrt(0.1 / 4.0)] * 2)


def test_integral_is_exact_over_jumps() -> None:
    # jumps at the ends of panels, and inside
    for period in (0.4, 0.4013):
        pulse = sig.Integral(sig.Pulse(amplitude=2.0, width=25.0, period=period))
        assert pulse.value(1.0) == pytest.approx(2.0 * 3.0 * 0.25 * period, abs=1e-14)
    wave = sig.Integral(sig.Sine(f=3.0, amplitude=6.0 * math.pi))
    assert wave.value(0.5) == pytest.approx(2.0, abs=1e-13)
    # whatever was asked before, the value is the same
    other = sig.Integral(sig.Sine(f=3.0, amplitude=6.0 * math.pi))
    other.sample(np.linspace(0.0, 0.4, 7))
    assert other.value(0.5) == wave.value(0.5)


def test_switching_times_are_found() -> None:
    assert sig.absolute(sig.Sine(f=2.0)).event_times(0.1, 0.9) == pytest.approx([0.25, 0.5, 0.75], abs=1e-14)
    square = sig.sign(sig.Sine(f=2.0))
    assert (square.before(0.25), square.after(0.25)) == (1.0, -1.0)
    assert sig.limited(sig.Ramp(height=4.0), -1.0, 1.0).event_times(0.0, 1.0) == pytest.approx([0.25], abs=1e-14)


def test_division_by_zero_is_told() -> None:
    with pytest.raises(RangeError, match="divides by 0"):
        (1.0 / sig.Ramp()).value(0.0)


@pytest.mark.parametrize("name", ["limited", "absolute", "larger", "smaller", "sign"])
def test_event_times_do_not_depend_on_the_window_they_are_looked_for_in(name: str) -> None:
    """The same bits: a simulation that looks ahead further, or begins elsewhere, splits its steps where it did."""
    u = sig.Sine(amplitude=2.0, f=1.1, phase=0.3) + sig.Sine(amplitude=0.7, f=7.3)
    signal = {
        "limited": sig.limited(u, -0.5, 1.5), "absolute": sig.absolute(u), "larger": sig.larger(u, sig.Sine(f=2.7)),
        "smaller": sig.smaller(u, sig.Sine(f=2.7)), "sign": sig.sign(u),
    }[name]  # fmt: skip
    whole = signal.event_times(0.0, 9.0)
    assert len(whole) > 15
    g = np.random.default_rng(5)
    for begin, length in zip(g.uniform(0.0, 8.0, 12), 10.0 ** g.uniform(-2.0, 1.0, 12), strict=True):
        end = min(9.0, begin + length)
        assert signal.event_times(begin, end) == [t for t in whole if begin < t < end]
