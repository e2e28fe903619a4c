"""ElastoGap with an exponent: against SciPy's integration phase by phase, its energy, generic and precompiled."""

from __future__ import annotations

import math

import numpy as np
import pytest
from gap_models import Bounce

from torqueloop.core.components import ElastoGap, Mass, TranslationalFixed
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.simulate.offline import Simulation

GRID, STOP = 8e-3, 0.32
TIMES = np.arange(1, round(STOP / GRID) + 1) * GRID
#: largest rms error in positions and speeds at 1 ms and 0.5 ms, by order and exponent. With 1 < n < 2 the force
#: leaves 0 as no smooth function does: order 4 is 2.5 there
ERRORS = {
    (2, 1.0): (2e-4, 5e-5), (2, 1.5): (4e-4, 1e-4), (2, 2.0): (6e-4, 1.5e-4), (2, 3.0): (1e-3, 3e-4),
    (4, 1.0): (2e-9, 2e-10), (4, 1.5): (5e-7, 7e-8), (4, 2.0): (4e-8, 3e-9), (4, 3.0): (2e-7, 1e-8),
}  # fmt: skip


def bounce(n: float, d: float) -> Bounce:
    return Bounce(n=n, d=d, c=(400.0 * 50.0 ** (n - 1.0), 150.0 * 50.0 ** (n - 1.0)))


@pytest.mark.parametrize("d", [0.0, 5.0])
@pytest.mark.parametrize("n", [1.0, 1.5, 2.0, 3.0])
def test_bouncing_masses_against_an_independent_integration(n: float, d: float) -> None:
    case = bounce(n, d)
    reference, phases = case.reference(list(TIMES))
    assert phases >= 3 and len(reference) == len(TIMES)
    for order in (2, 4):
        for h, largest in zip((1e-3, 5e-4), ERRORS[order, n], strict=True):
            r = case.run(order, h, STOP)
            every = round(GRID / h)
            found = np.stack([r[name] for name in ("M0.s", "M1.s", "M0.v", "M1.v")], axis=1)[every::every][: len(TIMES)]
            error = float(np.sqrt(np.mean((found - reference) ** 2)))
            assert error <= largest, f"order {order}, h = {h}: {error}"
            assert r.counters["fallbacks"] == 0
            assert r.counters["steep_unsolved"] == 0


@pytest.mark.parametrize("h", [4e-3, 1e-3])
@pytest.mark.parametrize("d", [0.0, 5.0])
@pytest.mark.parametrize("n", [1.5, 2.0, 3.0])
def test_two_points_keep_the_energy_to_rounding_and_three_within_what_is_checked(n: float, d: float, h: float) -> None:
    for order, closes in ((2, 1e-13), (4, 1e-5)):
        r = bounce(n, d).run(order, h, STOP)
        work = sum(r[f"F{k}.work"] for k in range(2))
        total = r["energy.kinetic"] + r["energy.potential"] + r["E0.loss"] + r["E1.loss"] - work
        assert np.abs(total - total[0]).max() <= closes * r["energy.kinetic"].max()
        for k in range(2):
            assert np.diff(r[f"E{k}.loss"]).min() >= -closes * r["energy.kinetic"].max()


def test_the_time_and_depth_of_a_hertzian_impact() -> None:
    """V = c x^(n+1)/(n+1) takes all of m v^2/2; a contact lasts 2 x_max/v int_0^1 dx/sqrt(1 - x^(n+1))."""
    m, c, v, n = 0.5, 1e6, 2.0, 1.5
    d = Driveline("impact", order=4)
    d.add("wall", TranslationalFixed())
    d.add("E", ElastoGap(c=c, d=0.0, n=n))
    d.add("M", Mass(m=m, s0=1e-3, v0=-v))
    d.connect("wall.flange", "E.flange_a")
    d.connect("E.flange_b", "M.flange_a")
    r = Simulation(d, h=2e-5).run(0.02)
    deepest = (m * v * v * (n + 1.0) / (2.0 * c)) ** (1.0 / (n + 1.0))
    power = 1.0 / (n + 1.0)
    lasts = 2.0 * deepest / v * math.sqrt(math.pi) * math.gamma(1.0 + power) / math.gamma(0.5 + power)
    assert -r["M.s"].min() == pytest.approx(deepest, rel=1e-4)
    assert r["E.f"].min() == pytest.approx(-c * deepest**n, rel=1e-4)
    # behind it: back as it came
    assert r["M.v"][-1] == pytest.approx(v, rel=1e-6)
    assert r["M.s"][-1] == pytest.approx(v * (0.02 - 0.5e-3 - lasts), rel=1e-5)


def test_the_force_follows_the_law_of_the_library() -> None:
    case = bounce(1.5, 5.0)
    r = case.run(4, 1e-3, STOP)
    x, w = r["E0.s_rel"], r["E0.v_rel"]
    spring = np.where(x < 0.0, -case.c[0] * np.abs(x) ** case.n, 0.0)
    damper = np.clip(case.d * w, spring, -spring)
    assert np.count_nonzero(x < 0.0) > 20
    assert r["E0.f"] == pytest.approx(spring + damper, abs=1e-6 * -spring.min())


def test_a_gap_far_stiffer_than_the_step_resolves_stays_a_gap() -> None:
    for n in (1.5, 3.0):
        for order in (2, 4):
            d = Driveline("hard", order=order)
            d.add("wall", TranslationalFixed())
            d.add("E", ElastoGap(c=1e12, d=0.0, n=n))
            d.add("M", Mass(m=1.0, s0=0.01, v0=-1.0))
            d.connect("wall.flange", "E.flange_a")
            d.connect("E.flange_b", "M.flange_a")
            r = Simulation(d, h=1e-3).run(0.05)
            energy = r["energy.kinetic"] + r["energy.potential"] + r["E.loss"]
            assert energy == pytest.approx(np.full(len(energy), 0.5), rel=1e-5)
            assert r["M.v"][-1] <= 1.0 + 1e-6 and r["M.v"][-1] > 0.0
