"""Whole runs of random drivelines against SciPy with located events, and what must hold for every one of them."""

from __future__ import annotations

import numpy as np
import pytest
from compare import Pair
from hypothesis import assume, given
from hypothesis import strategies as st
from laws import Wave
from neutral import Clutch, Train
from strategies import examples, trains
from trajectory import Ambiguous, Reference, Trajectory, tube_error

#: s
T = 0.3
#: of the range of each speed: one step per 1 ms tick, and 8 steps
TICK, FINE = 1e-4, 1e-5
OSCILLATING = ((32, FINE),)
orders = st.sampled_from([2, 4])


def expected(train: Train) -> Trajectory:
    """The reference; examples that may go on in more than one way are not taken."""
    try:
        return Reference(train).run(T)
    except Ambiguous:
        assume(False)
        raise


def check(train: Train, order: int | str, targets: tuple[tuple[int, float], ...] = ((1, TICK), (8, FINE))) -> None:
    reference = expected(train)
    for n, accuracy in targets:
        pair = Pair(train, 1e-3, order, n=n)
        result = pair.sim.run(T)
        w = np.stack([result[f"s{k}.w"] for k in range(len(train.J))], axis=1)
        error = tube_error(reference, result.time, w)
        assert error.max() <= accuracy, f"n = {n}: {error}"
        if n > 1:
            assert result.counters["fallbacks"] == 0


@examples(25)
@given(train=trains(shafts=(2, 10), frictions=(1, 6), springs=False, rates=2.0))
def test_friction_at_the_accuracy_targets(train: Train) -> None:
    check(train, "auto")


@pytest.mark.proof
@examples(25)
@given(train=trains(shafts=(2, 8), frictions=(1, 6), peaks=True, slopes=True, rates=2.0))
def test_springs_peaks_and_friction_over_slip_at_the_accuracy_targets(train: Train) -> None:
    check(train, 4, ((1, TICK), (8, FINE)) if not any(e.word == "spring" for e in train.elements) else OSCILLATING)


@pytest.mark.proof
@examples(25)
@given(train=trains(shafts=(2, 6), frictions=(0, 3), losses=True, springs=False, rates=2.0), order=orders)
def test_losses_at_the_accuracy_targets(train: Train, order: int) -> None:
    check(train, order)


@pytest.mark.proof
@examples(12)
@given(train=trains(shafts=(2, 6), frictions=(0, 3), losses=True, gaps=True, rates=2.0))
def test_clearances_at_the_accuracy_target_of_oscillations(train: Train) -> None:
    check(train, 4, OSCILLATING)


@examples(40)
@given(train=trains(shafts=(2, 30), frictions=(1, 20), peaks=True, slopes=True, losses=True), order=orders)
def test_energy_is_never_created(train: Train, order: int) -> None:
    pair = Pair(train, 1e-3, order)
    result = pair.sim.run(T)
    w = np.stack([result[f"s{k}.w"] for k in range(len(train.J))], axis=1)
    phi = np.stack([result[f"s{k}.phi"] for k in range(len(train.J))], axis=1)
    stored = np.array([pair.dense.energy(a, b) for a, b in zip(w, phi, strict=True)])
    work = sum((result[name] for name in result.names if name.endswith(".work")), np.zeros(len(result)))
    turned = stored.max() + np.abs(np.diff(work)).sum()
    free = stored - work
    # work is taken by a rule of the order of the step, so what it is off by shrinks with it
    assert np.diff(free).max() <= (1e-9 if order == 2 and not len(pair.dense.springs) else 2e-5) * turned
    for name in pair.dense.names:
        assert np.diff(result[f"{name}.heat" if f"{name}.heat" in result else f"{name}.loss"]).min() >= -1e-9 * turned


@examples(25)
@given(train=trains(shafts=(2, 12), frictions=(1, 10), losses=True, gaps=True), order=orders, seed=st.integers(1, 1000))
def test_order_of_listing_changes_no_bit(train: Train, order: int, seed: int) -> None:
    first, other = (Pair(train, 1e-3, order, shuffle=shuffle) for shuffle in (None, seed))
    assert first.sim.model.digest() == other.sim.model.digest()
    assert first.sim.model.output_names == other.sim.model.output_names
    a, b = first.sim.run(0.1), other.sim.run(0.1)
    assert np.array_equal(a.values, b.values) and first.sim.hash() == other.sim.hash()


def test_every_random_train_is_used_by_somebody() -> None:
    # the strategies do produce what they are for: gears, planetary sets, all kinds of friction, losses, clearances
    seen: set[str] = set()

    @examples(120)
    @given(train=trains(shafts=(2, 12), frictions=(1, 8), losses=True, gaps=True))
    def collect(train: Train) -> None:
        seen.update(e.word for e in train.elements)

    collect()
    assert seen == {"gear", "planetary", "clutch", "oneway", "wheel", "bearing", "spring", "torque", "lossy", "mesh",
                    "backlash"}  # fmt: skip


def test_the_reference_itself_has_the_closed_solution_of_a_slipping_clutch() -> None:
    train = Train([0.5, 1.5], [Clutch(0, 1, fn_max=20.0, f=Wave(0.5))], w0=np.array([30.0, -10.0]))
    # 10 Nm between them until both turn at 0: slip -40, closing at 10/0.5 + 10/1.5
    stop = 40.0 / (10.0 / 0.5 + 10.0 / 1.5)
    found = Reference(train).run(2.0)
    assert [way for _, way in found.ways(0)] == [-1, 0]
    assert found.ways(0)[1][0] == pytest.approx(stop, rel=1e-9)
    w, _ = found(np.array([stop, 2.0]))
    np.testing.assert_allclose(w, 0.0, atol=1e-9)
