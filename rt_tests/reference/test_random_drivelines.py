"""Random drivelines with everything that switches, against SciPy with each switching located (random_drivelines.py)."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

pytest.importorskip("scipy", reason="the independent solver needs SciPy (extra `dev`)")

from random_drivelines import Compared, alone, compared

from torqueloop.core.components import Brake, Inertia
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.simulate.offline import Simulation

#: of the range of each signal, one step per 1 ms tick at order 4
TICK = 1e-6
SEEDS = 60
#: looked at after every change: each kind of section and of drive is among them
ALWAYS = (0, 2, 5, 9, 11, 19, 20, 30)


@cache
def result(seed: int) -> Compared:
    return compared(seed)


@pytest.mark.parametrize("seed", ALWAYS)
def test_a_driveline_is_within_a_millionth_of_each_range(seed: int) -> None:
    c = result(seed)
    assert c.worst[0] <= TICK and c.counters["fallbacks"] == 0, (c.worst, c.sections)


def test_those_looked_at_always_have_every_section() -> None:
    seen = {kind for seed in ALWAYS for kind in result(seed).sections}
    assert seen >= {"plates", "one way", "lossy", "variable", "spring", "gap", "converter", "planetary", "rack",
                    "torque", "speed", "position", "accelerate"}  # fmt: skip


@pytest.mark.parametrize("section", ["plates", "one way", "converter"])
@pytest.mark.parametrize("seed", range(4))
def test_a_pack_pressed_by_oil_is_right_by_itself(section: str, seed: int) -> None:
    """LaminarClutch, OneWayLaminarClutch, LockUpTC with steps, ramps, waves, held commands, lags and fills;
    friction coefficients have a breakpoint now and then."""
    c = compared(seed, knees=True, make=alone(section))
    assert c.worst[0] <= TICK and c.counters["fallbacks"] == 0, c


@pytest.mark.proof
@pytest.mark.long
def test_57_of_60_drivelines_are_within_the_tolerance() -> None:
    found = [result(seed) for seed in range(SEEDS)]
    over = {c.seed: c.worst for c in found if c.worst[0] > TICK}
    print(over)
    assert len(over) <= 3 and max(c.worst[0] for c in found) <= 1e-5, over
    # more than 12 events in one step of one driveline
    assert sum(c.counters["fallbacks"] for c in found) <= 1


def test_the_knee_of_a_friction_coefficient_is_located() -> None:
    """J w' = -F mue(w) through the knee, at which mue changes its slope: exponentials on both sides."""
    J, F, w0, knee, m0, m1 = 0.02, 50.0, 30.0, 5.3, 1.0, 0.8
    d = Driveline("knee", order=4)
    d.add("a", Inertia(J=J, w0=w0))
    d.add("b", Brake(fn_max=F, mue_pos=[[0.0, m0], [knee, m1], [1000.0, m1]]))
    d.connect("a.flange_a", "b.flange_a")
    r = Simulation(d).run(0.016, inputs={"b.f_normalized": 1.0})
    begins, k = (w0 - knee) / (F * m1 / J), F * (m0 - m1) / (knee * J)
    # below it: w' = k w - F m0/J
    rest = F * m0 / J / k
    below = [rest + (knee - rest) * math.exp(k * (t - begins)) for t in r.time]
    w = np.where(r.time < begins, w0 - F * m1 / J * r.time, below)
    assert np.abs(r["a.w"] - w)[w > 0.0].max() <= TICK * w0
