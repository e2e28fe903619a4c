"""A run whose steps were not solved, or whose energy does not close, says so: in `Result.faults`, as a warning, and as
a monitor of a rig's run; each names the element where it is known, and the remedy."""

from __future__ import annotations

import dataclasses
import math
from types import SimpleNamespace

import numpy as np
import pytest

from torqueloop.core.components import Inertia, LossyGear, Torque, UniversalJoint
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.simulate import offline
from torqueloop.core.simulate.offline import Simulation
from torqueloop.core.simulate.remarks import Remark
from torqueloop.core.simulate.results import EnergyBalance, Result
from torqueloop.hil.report.drive_monitors import no_fallbacks
from torqueloop.hil.results.monitors import MonitorSpec
from torqueloop.hil.results.run import SolverStats


def joint_beyond_the_step() -> Driveline:
    """A light inertia that a heavy one shakes through a strongly bent joint: more than 100 trials a step."""
    d = Driveline("shaken", order=4)
    d.add("a", Inertia(J=1.3e-5, phi0=0.0, w0=1500.0))
    d.add("cardan", UniversalJoint(c=6.6e4, d=0.0, beta=math.radians(74.0), theta=0.6))
    d.add("b", Inertia(J=3.5, phi0=0.0, w0=1500.0))
    d.connect("a.flange_b", "cardan.flange_a")
    d.connect("cardan.flange_b", "b.flange_a")
    return d


def test_steps_that_were_not_solved_are_named_with_the_remedy() -> None:
    with pytest.warns(RuntimeWarning, match=r"cardan: torques were not found in \d+ steps: take more substeps"):
        run = Simulation(joint_beyond_the_step(), h=1e-3).run(0.2)
    assert run.counters["steep_unsolved"] > 0
    assert {fault.kind for fault in run.faults} == {"steep", "fallbacks"}


def test_energy_that_does_not_close_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> tuple[Remark, ...]:
        d = Driveline("gear")
        d.add("t", Torque())
        d.add("a", Inertia(J=1.0, phi0=0.0, w0=10.0))
        d.connect("t.flange", "a.flange_a")
        return Simulation(d, h=1e-3).run(0.1, {"t.tau": 5.0}).faults

    assert run() == ()
    balance = offline.Result.energy

    def open_by_2_percent(self: Result) -> EnergyBalance:
        return dataclasses.replace(balance(self), residual=0.02 * balance(self).turned_over)

    monkeypatch.setattr(offline.Result, "energy", open_by_2_percent)
    with pytest.warns(RuntimeWarning, match="2.0e-02 of the energy turned over is not accounted for"):
        assert [fault.kind for fault in run()] == ["energy"]


def test_trials_that_were_not_solved_fail_the_monitor_of_a_run() -> None:
    def judged(**counters: int) -> tuple[bool, str]:
        # 4 s
        drive = SimpleNamespace(t=np.arange(401) * 0.01, stats=SimpleNamespace(solver=SolverStats(**counters)))
        seen = no_fallbacks(MonitorSpec(), drive, 0.0)  # type: ignore[arg-type]
        assert seen is not None
        return seen.failed, seen.text

    assert judged() == (False, "")
    remedy = "more substeps of the clock may resolve them"
    assert judged(steep_unsolved=3) == (True, f"in 3 steps torques were not found to 1e-9, 0.75 in a second; {remedy}")
    assert judged(fallbacks=1, steep_unsolved=1)[0]
    assert judged(fallbacks=1) == (True, f"1 steps ended with a plain impulse, 0.25 in a second; {remedy}")


def test_beyond_its_last_row_a_loss_table_holds() -> None:
    """Efficiencies 0.6 and 0.9 at 0 and 100 rad/s would be 1.5 at 300 rad/s by the last slope: the gear would drive."""
    rows = [[0.0, 0.6, 0.6, 0.0, 0.0], [100.0, 0.9, 0.9, 0.0, 0.0]]
    d = Driveline("lossy")
    d.add("t", Torque())
    d.add("a", Inertia(J=0.1, phi0=0.0, w0=300.0))
    d.add("g", LossyGear(ratio=1, lossTable=rows))
    d.add("b", Inertia(J=0.4, phi0=0.0))
    d.connect("t.flange", "a.flange_a")
    d.connect("a.flange_b", "g.flange_a")
    d.connect("g.flange_b", "b.flange_a")
    run = Simulation(d, h=1e-3).run(0.05, {"t.tau": 20.0})
    # 0.4 a = 0.9 (20 - 0.1 a)
    assert run["a.a"][10] == pytest.approx(0.9 * 20.0 / (0.4 + 0.9 * 0.1), rel=1e-9)
    assert np.diff(run["g.heat"]).min() > 0.0
