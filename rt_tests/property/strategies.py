"""Random drivelines for hypothesis: what is joined to what is drawn (and shrinks), the numbers follow from a seed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from dense import Dense, matrix
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from laws import GROUND, Curve, Wave, flat
from neutral import (
    Backlash,
    Bearing,
    Clutch,
    Element,
    FreeWheel,
    Gear,
    Lossy,
    Mesh,
    OneWayClutch,
    Planetary,
    SpringDamper,
    Torque,
    Train,
)

RATIOS = [Fraction(s) for s in ("1/2", "2", "-3/2", "7/3", "-1", "41/17", "-5/4", "3")]
SETS = [Fraction(s) for s in ("3/2", "2", "23/10", "-23/10", "-3", "74/33")]
#: largest reduced inertia over the smallest: beyond it the speeds themselves lose digits
CONDITION = 1e5


def examples(count: int) -> settings:
    """Settings of all property tests; TORQUELOOP_PROPERTY_EXAMPLES multiplies the number of examples."""
    factor = float(os.environ.get("TORQUELOOP_PROPERTY_EXAMPLES", "1"))
    return settings(
        derandomize=True, deadline=None, database=None, max_examples=max(1, round(count * factor)),
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip


class Numbers:
    """Values of one element: they depend on the seed and its place only, so that shrinking leaves the others alone."""

    def __init__(self, seed: int, place: int, simple: bool, rates: float = 4.0) -> None:
        self.rates = rates
        self.g = np.random.default_rng((seed, place))
        self.simple = simple

    def between(self, low: float, high: float) -> float:
        value = float(self.g.uniform(low, high))
        return float(f"{value:.1g}") if self.simple else value

    def logarithmic(self, low: float, high: float) -> float:
        value = float(10.0 ** self.g.uniform(np.log10(low), np.log10(high)))
        return float(f"{value:.1g}") if self.simple else value

    def wave(self, low: float, high: float, moving: bool) -> Wave:
        """Around the middle of low..high; or constant."""
        if not moving:
            return Wave(self.between(low, high))
        half = 0.5 * (high - low)
        return Wave(low + half, self.between(0.3 * half, half), self.between(0.5, self.rates), self.between(0.0, 6.0))


class Growing:
    """A train in the making that refuses what would block a shaft or join what is joined."""

    def __init__(self, J: Sequence[float]) -> None:
        self.J = list(J)
        self.elements: list[Element] = []
        self.C = np.zeros((0, len(J)))

    def gear(self, element: Element) -> None:
        n = len(self.J)
        C = np.vstack([self.C, matrix(element.constraints(), n)])
        if np.linalg.matrix_rank(C, tol=1e-9) < len(C):
            return
        Z = np.linalg.svd(C)[2][len(C) :].T
        # every shaft can still turn, and against every other it could turn against before
        if Z.shape[1] < 1 or np.abs(Z).max(axis=1).min() < 1e-6:
            return
        for i in range(n):
            for k in range(i):
                if np.abs(Z[i] - Z[k]).max() < 1e-6:
                    return
        self.C = C
        self.elements.append(element)

    def relative(self, row: dict[int, float]) -> bool:
        """Can the two sides of this row move against each other?"""
        Z = np.linalg.svd(self.C)[2][len(self.C) :].T if len(self.C) else np.eye(len(self.J))
        r = matrix([row], len(self.J))[0]
        return bool(np.abs(r @ Z).max() > 1e-6)


@st.composite
def trains(
    draw: st.DrawFn,
    shafts: tuple[int, int] = (2, 10),
    frictions: tuple[int, int] = (1, 8),
    *,
    peaks: bool = False,
    moving: bool = True,
    slopes: bool = False,
    springs: bool = True,
    losses: bool = False,
    gaps: bool = False,
    rates: float = 4.0,
    at_rest: bool | None = None,
    simple: bool | None = None,
) -> Train:
    """A random train. moving: inputs over time, up to `rates` Hz; slopes: friction over slip; gaps: clearances;

    at_rest: start speeds zero, simple: numbers of one digit (None: either).
    """
    seed = draw(st.integers(0, 2**20))
    rough = draw(st.booleans()) if simple is None else simple
    n = draw(st.integers(*shafts))
    J = [Numbers(seed, 1000 + k, rough).logarithmic(0.01, 2.0) for k in range(n)]
    shaft = st.integers(0, n - 1)
    place = st.integers(GROUND, n - 1)
    grown = Growing(J)
    for k in range(draw(st.integers(int(losses), max(int(losses), (n - 1) // 2)))):
        g = Numbers(seed, 2000 + k, rough)
        three = draw(st.lists(shaft, min_size=2, max_size=3, unique=True))
        if losses and (k == 0 or draw(st.booleans())):
            grown.gear(lossy(three, g))
        elif len(three) == 3:
            grown.gear(Planetary(*three, ratio=SETS[g.g.integers(len(SETS))]))
        else:
            grown.gear(Gear(*three, ratio=RATIOS[g.g.integers(len(RATIOS))]))
    for k in range(draw(st.integers(*frictions))):
        element = draw_friction(draw, place, shaft, Numbers(seed, 3000 + k, rough, rates), peaks, moving, slopes)
        law = None if element is None else element.laws(0)[0]
        if element is not None and grown.relative(dict(law.row)):
            grown.elements.append(element)
    for k in range(draw(st.integers(0, 2)) if springs else 0):
        g = Numbers(seed, 4000 + k, rough)
        spring = SpringDamper(draw(shaft), draw(shaft), g.logarithmic(10.0, 2000.0), g.between(0.0, 2.0), 0.1)
        if grown.relative(dict(spring.row)):
            grown.elements.append(spring)
    if gaps:
        g = Numbers(seed, 7000, rough)
        gap = Backlash(draw(shaft), draw(shaft), g.logarithmic(20.0, 1000.0), g.between(0.0, 2.0), g.between(0.01, 0.2))
        if grown.relative(dict(gap.row)):
            grown.elements.append(gap)
    for k in range(draw(st.integers(1, 3))):
        g = Numbers(seed, 5000 + k, rough, rates)
        grown.elements.append(Torque(draw(shaft), g.wave(-30.0, 30.0, moving)))
    used = {k for e in grown.elements for k in e.part()[1].values()}
    grown.elements += [Bearing(k, flat(0.5)) for k in range(n) if k not in used]
    resting = draw(st.booleans()) if at_rest is None else at_rest
    train = Train(J, grown.elements)
    dense = Dense(train)
    if not resting:
        g = np.random.default_rng((seed, 6000))
        w = dense.consistent_start(g.uniform(-40.0, 40.0, n))
        train.w0 = np.round(w, 1) if rough and not len(dense.C) else w
    return train


def lossy(shafts: list[int], g: Numbers) -> Element:
    """A gear with losses on two shafts, a mesh with losses on three."""
    if len(shafts) == 3:
        R_in, R_out, part = int(g.g.integers(10, 40)), int(g.g.integers(10, 40)), int(g.g.integers(1, 8))
        return Mesh(*shafts, Fraction(R_in, 1000), Fraction(R_out, 1000), Fraction(part * min(R_in, R_out), 50_000))
    eta1, eta2 = g.between(0.6, 0.94), g.between(0.6, 0.94)
    tbf = (0.0, 0.0) if g.g.random() < 0.3 else (g.between(0.1, 2.0), g.between(0.1, 2.0))
    return Lossy(shafts[0], shafts[1], RATIOS[g.g.integers(len(RATIOS))], ((0.0, eta1, eta2, *tbf),))


def draw_friction(
    draw: st.DrawFn, place: st.SearchStrategy[int], shaft: st.SearchStrategy[int], g: Numbers, peaks: bool,
    moving: bool, slopes: bool,
) -> Element | None:  # fmt: skip
    """Clutch or brake (most), one-way clutch, free wheel, bearing."""
    kind = draw(st.sampled_from(["clutch", "clutch", "clutch", "one way", "wheel", "bearing"]))
    a, b = draw(place), draw(shaft)
    if a == b:
        return None
    peak = g.between(1.05, 1.4) if peaks else 1.0
    mue = flat(g.between(0.5, 1.0))
    if slopes:
        mue = Curve((0.0, g.between(1.0, 10.0), 50.0), tuple(g.between(0.6, 1.2) for _ in range(3)))
    press = g.wave(-0.3, 1.0, moving)
    if kind == "wheel":
        return FreeWheel(a, b)
    if kind == "bearing":
        tau = flat(g.between(1.0, 10.0))
        if slopes:
            tau = Curve((0.0, 20.0), (g.between(1.0, 10.0), g.between(5.0, 15.0)))
        return Bearing(b, tau, peak)
    values = {"fn_max": g.between(5.0, 60.0), "f": press, "mue": mue, "cgeo": 0.5, "peak": peak}
    return OneWayClutch(a, b, **values) if kind == "one way" else Clutch(a, b, **values)
