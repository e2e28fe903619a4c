"""Runs that share their common part have the bits of runs from the start."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping

import numpy as np
import pytest
from core_examples import zf_4hp22

pytest.importorskip("torqueloop.cython_kernels.kernel.kernel", reason="the kernels are not built: scripts/run")

from torqueloop.core.components import Inertia, Torque
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.signals import (
    Constant,
    Function,
    Piecewise,
    Ramp,
    Signal,
    Sine,
    Step,
    Table,
    equal_until,
)
from torqueloop.core.simulate.branches import Branches
from torqueloop.core.simulate.offline import Simulation
from torqueloop.core.simulate.results import Result

END = 1.5
Inputs = Mapping[str, Signal]


def _gearbox() -> Driveline:
    """A torque drives its input, a heavy car turns with its output."""
    d = zf_4hp22()
    d.add("torque", Torque())
    d.connect("torque.flange", "in.flange_a")
    d.add("car", Inertia(J=20.0))
    d.connect("out.flange_b", "car.flange_a")
    return d


def _shift(begin: float, ramp: float, level: float = 6e5, torque: Signal | None = None) -> Inputs:
    """From first to second gear: C6 closes; the pressures are tables with flat parts before the shift."""
    hold = Table([(0.0, 8e5), (begin, 8e5)])
    return {
        "torque.tau": Sine(amplitude=30.0, f=3.0, offset=60.0) if torque is None else torque,
        "C4.p": Constant(8e5),
        "C11.p": hold,
        "C6.p": Table([(0.0, 0.0), (begin, 0.0), (begin + ramp, level), (begin + ramp, 8e5)]),
    }


def _alone(inputs: Inputs, substeps: int = 1) -> tuple[Result, int]:
    simulation = Simulation(_gearbox(), substeps=substeps)
    names = set(simulation.model.input_names)
    assert set(inputs) <= names, (sorted(set(inputs) - names), sorted(names))
    result = simulation.run(END, inputs)
    return result, simulation.hash()


def _compare(branches: Branches, inputs: Inputs, substeps: int = 1) -> None:
    wanted, state = _alone(inputs, substeps)
    found = branches.run(END, inputs)
    assert np.array_equal(found.values, wanted.values)
    assert np.array_equal(found.time, wanted.time)
    assert found.modes == wanted.modes
    assert len(found.modes) > 3, "clutches lock and slip"
    assert found.counters == wanted.counters
    assert found.energy() == wanted.energy()
    assert branches.simulation.hash() == state


@pytest.mark.parametrize("substeps", [1, 2])
def test_branches_have_the_bits_of_whole_runs(substeps: int) -> None:
    """Later and earlier shifts in any order; also events on the grid, inside a step, and on a kept state (0.768 s)."""
    branches = Branches(Simulation(_gearbox(), substeps=substeps))
    for begin in (0.9, 0.9, 1.0, 0.7683, 0.768, 1.2004, 0.3, 1.3, 0.05, 0.9):
        _compare(branches, _shift(begin, 0.1), substeps)
    _compare(branches, _shift(0.9, 0.3, level=3e5), substeps)


def test_an_input_that_differs_from_the_start_is_run_from_the_start() -> None:
    branches = Branches(Simulation(_gearbox()))
    for level in (60.0, 60.0, 61.0, 60.0, -20.0):
        _compare(branches, _shift(0.9, 0.1, torque=Constant(level)))


def test_a_jump_and_a_wave_that_differ_late() -> None:
    branches = Branches(Simulation(_gearbox()))
    for torque in (Step(20.0, 60.0, 1.1), Step(25.0, 60.0, 1.1), Step(20.0, 60.0, 1.25), Ramp(20.0, 0.1, 60.0, 1.2)):
        _compare(branches, _shift(1.3, 0.1, torque=torque))


def test_another_duration_and_forgetting_begin_anew() -> None:
    branches = Branches(Simulation(_gearbox()))
    for _ in range(3):
        assert len(branches.run(0.6, _shift(0.5, 0.05))) == 601
    _compare(branches, _shift(0.9, 0.1))
    branches.forget()
    _compare(branches, _shift(0.95, 0.1))


def test_the_common_part_is_not_simulated_again(monkeypatch: pytest.MonkeyPatch) -> None:
    branches = Branches(Simulation(_gearbox()))
    advanced: list[int] = []
    whole: Callable[..., None] = Simulation._advance

    def counted(self: Simulation, ticks: int, out: np.ndarray) -> None:
        advanced.append(ticks)
        whole(self, ticks, out)

    monkeypatch.setattr(Simulation, "_advance", counted)
    for begin in (1.2, 1.2, 1.3):
        advanced.clear()
        branches.run(END, _shift(begin, 0.1))
    # states are kept at 1 024 ticks and at 1 280; the inputs differ from 1 200 on
    assert sum(advanced) == 1500 - 1024


def test_what_the_run_did_not_resolve_is_told_in_branches_too() -> None:
    rings = Sine(amplitude=500.0, f=2300.0)
    branches = Branches(Simulation(_gearbox()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for begin in (0.9, 0.9, 1.0):
            result = branches.run(END, _shift(begin, 0.1, torque=rings))
    assert "reversals" in {remark.kind for remark in result.remarks}


@pytest.mark.parametrize(
    ("a", "b", "until"),
    [
        (Constant(1.0), Constant(1.0), 2.0),
        (Constant(1.0), Constant(2.0), 0.0),
        (Table([(0, 5), (1.0, 5), (1.2, 0)]), Table([(0, 5), (1.0, 5), (1.2, 1)]), 1.0),
        # a point of a flat table ends a step, though its value stays
        (Table([(0, 5), (1.0, 5), (1.2, 0)]), Table([(0, 5), (0.7, 5), (1.2, 0)]), 0.7),
        (Table([(0, 5), (0.7, 5), (1.0, 5)]), Table([(0, 5), (1.0, 5)]), 0.7),
        (Table([(0, 0), (1.0, 1)]), Table([(0, 0), (1.0, 2)]), 0.0),
        (Step(1.0, 0.0, 0.5), Step(2.0, 0.0, 0.5), 0.5),
        (Piecewise((0.5, 1.5), ((0.0,), (0.0, 1.0), (1.0,))), Piecewise((0.5, 1.5), ((0.0,), (0.0, 1.0), (2.0,))), 1.5),
        (Sine(1.0, 2.0), Sine(1.0, 2.0), 2.0),
        (Sine(1.0, 2.0), Sine(1.0, 2.1), 0.0),
    ],
)
def test_how_long_two_signals_are_equal(a: Signal, b: Signal, until: float) -> None:
    assert equal_until(a, b, 2.0) == until
    assert equal_until(b, a, 2.0) == until


def test_a_function_of_the_users_is_not_known_beforehand() -> None:
    wave = Function(lambda t: t)
    assert equal_until(wave, wave, 2.0) == 0.0
