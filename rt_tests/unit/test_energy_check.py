"""The energy balance of a run: what it is measured by, heat that no output shows. A state is stepped by one thread."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
import pytest

pytest.importorskip("torqueloop.cython_kernels.kernel.kernel", reason="the kernels are not built: scripts/run")

from torqueloop.core.components import Fixed, Inertia, SpringDamper, Torque
from torqueloop.core.components.of_motion import TWO_SHAFTS
from torqueloop.core.describe.builder import Builder
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.simulate.offline import Simulation


def swinging(phi: float) -> Driveline:
    d = Driveline("two inertias and a spring", order=4)
    d.add("J1", Inertia(J=0.02, phi0=phi))
    d.add("shaft", SpringDamper(c=100.0, d=0.0))
    d.add("J2", Inertia(J=0.05))
    d.connect("J1.flange_b", "shaft.flange_a")
    d.connect("shaft.flange_b", "J2.flange_a")
    return d


def test_energy_that_goes_to_and_fro_is_turned_over() -> None:
    """A spring wound by 0.1 rad holds 0.5 J, and nobody puts in more."""
    energy = Simulation(swinging(0.1)).run(2.0).energy()
    assert energy.turned_over == pytest.approx(0.5, rel=1e-9)
    assert energy.relative_residual < 1e-9


@dataclass(frozen=True, kw_only=True)
class HiddenDamper(Component):
    """A damper without an output for its heat."""

    flanges = TWO_SHAFTS

    def contribute(self, b: Builder) -> None:
        b.compliance(b.w("flange_a") - b.w("flange_b"), 0.0, 2.0)


def test_heat_that_no_output_shows_is_found_and_named() -> None:
    """2 N.m s/rad brake 1/2 0.02 (50 rad/s)^2 = 25 J to rest, and none of its outputs says so."""
    d = Driveline("hidden")
    d.add("J", Inertia(J=0.02, w0=50.0))
    d.add("grease", HiddenDamper())
    d.add("housing", Fixed())
    d.connect("J.flange_b", "grease.flange_a")
    d.connect("grease.flange_b", "housing.flange")
    energy = Simulation(d).run(1.0).energy()
    assert energy.unshown == ("grease (no output)",)
    assert energy.heat["grease (no output)"] == pytest.approx(25.0, rel=1e-6)
    assert energy.relative_residual < 1e-6


def test_a_state_that_another_thread_steps_is_an_error() -> None:
    d = swinging(0.1)
    d.add("t", Torque())
    d.connect("t.flange", "J1.flange_a")
    sim = Simulation(d)
    sim.run(0.1)
    alone = sim.state.copy()
    steps = np.zeros((2_000_000, 1))
    refused: list[str] = []
    thread = threading.Thread(target=lambda: sim._kernel.run(sim.state, steps, None))
    thread.start()
    while thread.is_alive():
        for use in (sim.step, sim.outputs, lambda: sim.state.copy(), lambda: sim._kernel.run(sim.state, steps[:1])):
            try:
                use()
            except RuntimeError as error:
                refused.append(str(error))
        if len(refused) > 8:
            break
    thread.join()
    assert len(refused) > 8 and "another thread steps this state" in refused[0]
    # nothing of it reached the state: the run is that of one thread, but for calls before it had begun
    sim.restore(alone)
    first = sim._kernel.run(sim.state, steps, None)
    assert first == len(steps) and np.isfinite(sim.outputs()).all()
