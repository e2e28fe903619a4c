"""Pulses of a toothed wheel against positions and edges that are computed here in whole numbers and fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from test_car_side import NAMES, PLAIN, T

from torqueloop.cython_kernels.tick.sensors import Sensors

Z, D = 60, 10_000
PER_RAD = Z / (2.0 * math.pi)
DRIVE = 150.0 * np.sin(np.arange(4000) * 0.013) + 40.0


class Wheel:
    """A sensor of teeth on its own signal table; set: signals at the begin."""

    def __init__(self, sensor: dict[str, object], **start: float) -> None:
        self.made = Sensors(20, 1, T)
        self.made.set_teeth(0, **(PLAIN | sensor))  # type: ignore[arg-type]
        self.sig = np.zeros(20)
        for name, value in start.items():
            self.sig[3 + NAMES.index(name)] = value

    def tick(self, measured: float) -> dict[str, float]:
        self.sig[2] = measured
        self.made.tick(self.sig)
        return dict(zip(NAMES, self.sig[3 : 3 + len(NAMES)].tolist(), strict=True))

    def run(self, measured: np.ndarray) -> dict[str, np.ndarray]:
        rows = [self.tick(x) for x in measured.tolist()]
        return {name: np.array([row[name] for row in rows]) for name in NAMES}


def splitmix(seed: int, number: int, which: int) -> float:
    """splitmix64 (S. Vigna), written from its definition."""
    mask = (1 << 64) - 1
    z = (seed + (2 * number + which + 1) * 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return ((z ^ (z >> 31)) >> 11) / (1 << 53)


def test_the_position_is_the_exact_sum_of_all_ways() -> None:
    w = 700.0 + 300.0 * np.sin(np.arange(100_000) * 0.37)
    wheel = Wheel({})
    for value in w.tolist():
        got = wheel.tick(value)
    before = np.concatenate([w[:1], w[:-1]])
    ways = PER_RAD * 0.5 * (before + w) * T
    exact = sum(map(Fraction, ways.tolist()))
    kept = Fraction(got["tooth"]) + Fraction(got["angle"]) + Fraction(got["rest"])
    assert got["tooth"] > 600_000 and abs(kept - exact) < Fraction(1, 10**20)
    assert got["count"] == exact // 1


def test_a_wheel_behind_a_billion_teeth_gives_the_pulses_of_a_new_one() -> None:
    far = 10**9 * 1.0
    new, old = Wheel({"run_out": 0.2, "missing": 2}), Wheel({"run_out": 0.2, "missing": 2})
    # the state of a wheel that has turned so far: a whole number of turns more
    new.tick(0.0), old.tick(0.0)
    old.sig[3 + NAMES.index("tooth")] = far - far % Z
    a, b = new.run(DRIVE), old.run(DRIVE)
    for name in set(NAMES) - {"tooth"}:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)
    np.testing.assert_array_equal(a["tooth"] + far - far % Z, b["tooth"])
    assert a["edges"].sum() > 3500


def test_an_angle_of_a_hundred_million_radians_loses_no_edge() -> None:
    # steps that both angles hold exactly: the differences are the same
    steps = np.round(DRIVE * T * 2.0**20) / 2.0**20
    start = 2.0**27
    near, distant = Wheel({"of_angle": True}), Wheel({"of_angle": True})
    near.tick(0.0)
    distant.tick(start)
    first = distant.sig[3 + NAMES.index("tooth")] + distant.sig[3 + NAMES.index("angle")]
    assert first == pytest.approx(math.fmod(start, 2.0 * math.pi) * PER_RAD, abs=1e-10)
    a, b = near.run(np.cumsum(steps)), distant.run(start + np.cumsum(steps))
    turned = b["tooth"] + b["angle"] - first - (a["tooth"] + a["angle"])
    assert np.abs(turned).max() < 1e-10
    # edges of either direction, from the angle in fractions
    for got, begin in ((a, 0.0), (b, first)):
        at = [Fraction(begin)]
        for step in steps.tolist():
            at.append(at[-1] + Fraction(step) * Fraction(PER_RAD))
        passed = [abs(y // 1 - x // 1) for x, y in zip(at, at[1:], strict=False)]
        np.testing.assert_array_equal(got["edges"], np.array(passed, float))


def test_a_generator_that_runs_at_the_frequency_gives_each_tooth_once() -> None:
    wheel = Wheel({"signed_speed": True})
    phase = 0
    for w in DRIVE.tolist() * 5:
        got = wheel.tick(w)
        parts = got["frequency"] * D * T
        assert parts == pytest.approx(round(parts), abs=1e-6)
        phase += round(parts)
        assert phase // D == got["tooth"]
        assert phase == D * int(got["tooth"]) + math.floor(D * got["angle"])
    unsigned = Wheel({}).run(DRIVE)["frequency"]
    np.testing.assert_array_equal(unsigned, np.abs(Wheel({"signed_speed": True}).run(DRIVE)["frequency"]))


@pytest.mark.parametrize(("begin", "edges"), [(0.9, 1), (0.5, 2), (0.05, 0)])
def test_a_reversal_within_a_tick_gives_the_edges_on_the_way_there_and_back(begin: float, edges: int) -> None:
    # 0.86 teeth there and 0.38 back
    got = Wheel({}, begun=1.0, angle=begin, before=300.0).tick(-200.0)
    # the speed falls linearly: the same in 200 000 parts
    w = 300.0 - 500.0 * (np.arange(200_000) + 0.5) / 200_000
    at = begin + np.cumsum(w) * PER_RAD * T / 200_000
    assert np.abs(np.diff(np.floor(np.concatenate([[begin], at])))).sum() == edges
    assert got["edges"] == edges and got["direction"] == -1.0
    assert got["tooth"] + got["angle"] == pytest.approx(at[-1], abs=1e-6)


def test_each_edge_comes_once_in_each_direction_where_it_is_displaced() -> None:
    sensor = {"run_out": 0.3, "jitter": 0.15, "missing": 2, "seed": 7}
    got = Wheel(dict(sensor)).run(DRIVE)
    at = got["tooth"] + got["angle"]
    numbers = np.arange(int(at.min()) - 2, int(at.max()) + 3)
    d = np.array([0.15 * (2.0 * splitmix(7, int(k) % (1 << 64), 1) - 1.0) for k in numbers])
    places = numbers + d + 0.3 * np.sin(2.0 * math.pi * numbers / Z)
    places = places[numbers % Z < Z - 2]
    passed = np.searchsorted(places, np.concatenate([[0.0], at]), side="right")
    # a tick of one direction passes the difference, one with a reversal a pair of edges more where it comes back
    more = got["edges"] - np.abs(np.diff(passed))
    reverses = np.concatenate([[False], DRIVE[1:] * DRIVE[:-1] < 0.0])
    assert reverses.sum() > 10 and (more[~reverses] == 0.0).all() and np.isin(more[reverses], (0.0, 2.0)).all()
    assert got["direction"].min() == -1.0 and got["edges"].sum() > 3500


def test_the_reference_gap_comes_once_a_turn() -> None:
    w = 40.0
    got = Wheel({"missing": 2}).run(np.full(20_000, w))
    tooth_s = 2.0 * math.pi / (Z * w)
    seen = got["edges"] > 0
    gaps = np.flatnonzero(seen & (got["period"] > 2.0 * tooth_s))
    np.testing.assert_allclose(got["period"][gaps], 3.0 * tooth_s, rtol=1e-6)
    turns = 20_000 * T * w / (2.0 * math.pi)
    assert abs(len(gaps) - turns) < 1.0
    # 58 edges from a gap to the next
    between = np.diff(np.cumsum(got["edges"])[gaps])
    np.testing.assert_array_equal(between, 58.0)


def test_an_eccentric_wheel_displaces_its_edges_once_around() -> None:
    w, share = 40.0, 0.25
    got = Wheel({"run_out": share}).run(np.full(2_000, w))
    k = np.flatnonzero(got["edges"] > 0)
    times = (k + 1) * T - got["age"][k]
    numbers = np.arange(1, len(k) + 1)
    true = (numbers + share * np.sin(2.0 * math.pi * numbers / Z)) * 2.0 * math.pi / (Z * w)
    np.testing.assert_allclose(times, true, atol=1e-9)


def test_a_coil_is_seen_from_its_threshold_on_and_its_amplitude_follows_the_air_gap() -> None:
    sensor = {"amplitude_Vs": 0.01, "amplitude_run_out": 0.2, "threshold_V": 0.5}
    w = np.linspace(0.0, 100.0, 20_000)
    got = Wheel(dict(sensor)).run(w)
    k = np.flatnonzero(got["edges"] > 0)
    # 0.5 V at the smallest gap from 41.7 rad/s on, at the largest from 62.5 rad/s on
    assert 41.6 < w[k[0]] < 46.0
    always = w > 62.6
    assert got["edges"][always][1:].sum() == np.diff(got["count"][always]).sum() > 100
    tooth = got["tooth"][1:] % Z
    mean = 0.5 * (w[1:] + w[:-1])
    expected = 0.01 * mean * (1.0 + 0.2 * np.cos(2.0 * math.pi * tooth / Z))
    np.testing.assert_allclose(got["amplitude"][1:], expected, rtol=1e-6, atol=1e-8)


def test_pulses_tell_the_direction_and_come_at_standstill_too() -> None:
    sensor = {"widths_s": (45e-6, 90e-6, 1.44e-3), "every_s": 0.7371}
    wheel = Wheel(dict(sensor))
    forward, backward = wheel.run(np.full(1000, 20.0)), wheel.run(np.full(1000, -20.0))
    assert (forward["width"][10:] == 45e-6).all() and (backward["width"][10:] == 90e-6).all()
    np.testing.assert_array_equal(forward["pulses"], forward["edges"])
    last = backward["age"][-1]
    still = wheel.run(np.zeros(5000))
    at = np.flatnonzero(still["pulses"] > 0)
    assert (still["width"][at] == 1.44e-3).all() and still["edges"].sum() == 0
    # in the tick in which the time since the last edge, which is no whole number of ticks, reaches the interval
    due = np.ceil((0.7371 * np.arange(1, 7) - last) / T - 1e-6)
    np.testing.assert_array_equal(at + 1, due)
    assert 0.2 < last / T % 1.0 < 0.9


def test_a_first_edge_has_no_period() -> None:
    got = Wheel({}).run(np.full(30, 20.0))
    first = int(np.flatnonzero(got["edges"])[0])
    assert got["period"][first] == 0.0 and got["w"][first] == 0.0


def test_edges_that_could_change_their_order_are_refused() -> None:
    with pytest.raises(ValueError, match="half a tooth"):
        Wheel({"jitter": 0.3, "run_out": 0.2})
    with pytest.raises(ValueError, match="without 60"):
        Wheel({"missing": 60})
