"""Two blocks sliding on each other: Otter, Dempsey, Schlegel, "Package PowerTrain", Modelica Workshop 2000, section 5.

    m1 v1' = u1 + f2 - f1          v1: speed of block 1, f1: friction of the ground on it
    m2 (v1 + v2)' = u2 - f2        v2: speed of block 2 relative to block 1, f2: friction of block 1 on it

Sliding: f = f0 against the motion; stuck: up to f_max. The paper shows stick-slip for f_max/f0 = 1.25 (figure 6)
without giving its forces. Ours are u1 = 0.8 sin(2 pi 0.4 t), u2 = 1.8 sin(2 pi 1.1 t), f0 = 1 N on both faces, 1 kg:
6 phases of sticking on either face, 5 and 6 of sliding, with and without a stop between two directions.
The reference is the dense one of the property tests: SciPy within a mode, events located, modes by trying all.
"""

from __future__ import annotations

import numpy as np
import pytest
from laws import Wave, flat
from neutral import Bearing, Clutch, Torque, Train
from trajectory import Reference, Trajectory

from torqueloop.core.components import Force, Mass, SupportFriction
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.signals import SignalLike, Step
from torqueloop.core.simulate.offline import Simulation
from torqueloop.core.simulate.results import Result

F0 = 1.0
U1, U2 = Wave(0.0, 0.8, 0.4), Wave(0.0, 1.8, 1.1)
T = 4.0
#: what each face does
WAYS = {"face1": [0, 1, 0, 1, -1, 0, -1, 0, 1, 0, 1, 0], "face2": [0, -1, 0, 1, 0, 1, 0, -1, 0, -1, 0, 1]}


def sliding_blocks(ratio: float) -> Driveline:
    """Masses on faces with friction; ratio = f_max/f0."""
    d = Driveline("two blocks")
    d.add("block1", Mass(m=1.0))
    d.add("block2", Mass(m=1.0))
    d.add("face1", SupportFriction(f_pos=F0, peak=ratio))
    d.add("face2", SupportFriction(f_pos=F0, peak=ratio))
    d.add("u1", Force())
    d.add("u2", Force())
    d.connect("block1.centre", "face1.flange_a", "face2.support", "u1.flange")
    d.connect("block2.centre", "face2.flange_a", "u2.flange")
    return d


def reference(ratio: float) -> Trajectory:
    """The same as turning masses in the dense reference: shaft 0 is block 1, shaft 1 block 2."""
    ground, between = Bearing(0, flat(F0), peak=ratio), Clutch(0, 1, fn_max=F0, f=Wave(1.0), peak=ratio)
    train = Train([1.0, 1.0], [ground, between, Torque(0, U1), Torque(1, U2)])
    return Reference(train).run(T)


def run(ratio: float, duration: float, u1: SignalLike, u2: SignalLike, n: int = 1) -> tuple[Simulation, Result]:
    sim = Simulation(sliding_blocks(ratio), h=1e-3, substeps=n)
    return sim, sim.run(duration, inputs={"u1.f": u1, "u2.f": u2})


@pytest.mark.parametrize(("n", "accuracy"), [(1, 1e-4), (8, 1e-5)])
def test_stick_slip_with_breakaway_forces_above_the_sliding_ones(n: int, accuracy: float) -> None:
    expected = reference(1.25)
    _, result = run(1.25, T, U1.signal(), U2.signal(), n)
    w, s = expected(result.time)
    for got, wanted in ((result["block1.v"], w[:, 0]), (result["block2.v"], w[:, 1]),
                        (result["block1.s"], s[:, 0]), (result["block2.s"], s[:, 1])):  # fmt: skip
        assert np.abs(got - wanted).max() <= accuracy * np.ptp(wanted)
    for k, face in enumerate(("face1", "face2")):
        phases = expected.ways(k)
        seen = [(c.time_s, c.mode) for c in result.modes if c.element == face]
        assert [way for _, way in phases] == [way for _, way in seen]
        times = [[t for t, _ in changes] for changes in (seen, phases)]
        np.testing.assert_allclose(*times, rtol=0.0, atol=1e-5 if n == 1 else 1e-7)
        assert [way for _, way in phases] == WAYS[face]


def test_stuck_forces_go_up_to_f_max_and_sliding_ones_are_f0() -> None:
    _, result = run(1.25, T, U1.signal(), U2.signal(), 8)
    for face in ("face1", "face2"):
        force, stuck = np.abs(result[f"{face}.f"][1:]), result[f"{face}.mode"][1:] == 0
        assert np.abs(force[~stuck] - F0).max() < 1e-12
        assert 1.2 * F0 < force[stuck].max() <= 1.25 * F0 * (1.0 + 1e-9), "the drop from f_max to f0 at each break-away"


def test_three_assumptions_resolve_to_block_1_sliding_and_block_2_stuck() -> None:
    # both stuck: f1 = 2.0 and f2 = 1.1 exceed f0; both sliding: block 2 would slide backward; so only block 1 slides:
    # (m1 + m2) a = u1 + u2 - f0, f2 = u2 - m2 a
    jump = Step(height=1.1 * F0, startTime=0.1)
    _, before = run(1.0, 0.1, 0.9 * F0, jump)
    assert [before[f"{face}.mode"][-1] for face in ("face1", "face2")] == [0, 0]
    assert before["block1.v"][-1] == before["block2.v"][-1] == 0.0
    sim, result = run(1.0, 0.2, 0.9 * F0, jump)
    changes = [(c.time_s, c.element, c.mode) for c in result.modes if c.time_s > 0.0]
    assert changes == [(pytest.approx(0.1, abs=1e-12), "face1", 1)]
    assert sim.output("block1.a") == pytest.approx(0.5, rel=1e-12)
    assert sim.output("block2.a") == pytest.approx(0.5, rel=1e-12)
    assert sim.output("face1.f") == pytest.approx(1.0 * F0, rel=1e-12)
    assert sim.output("face2.f") == pytest.approx(0.6 * F0, rel=1e-12)
    np.testing.assert_allclose(result["block1.v"], 0.5 * np.maximum(0.0, result.time - 0.1), rtol=0.0, atol=1e-14)
    np.testing.assert_allclose(result["block2.v"], result["block1.v"], rtol=0.0, atol=1e-14)
