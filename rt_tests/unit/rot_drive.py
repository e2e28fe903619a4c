"""Small drivelines for the tests of the components."""

from __future__ import annotations

from torqueloop.core.components import Component, Inertia
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.simulate.offline import Simulation
from torqueloop.core.simulate.results import Result


def drive(*connections: tuple[str, ...], order: int | str = "auto", **components: Component) -> Driveline:
    """A driveline of components by name and connection sets."""
    d = Driveline("test", order=order)
    for name, component in components.items():
        d.add(name, component)
    for group in connections:
        d.connect(*group)
    return d


def run(driveline: Driveline, duration: float, h: float = 1e-3, substeps: int = 1, **inputs: object) -> Result:
    """Simulate; inputs by name with "__" for the dot."""
    simulation = Simulation(driveline, h=h, substeps=substeps)
    return simulation.run(duration, inputs={name.replace("__", "."): value for name, value in inputs.items()})


def on_inertia(J: float, component: Component, flange: str = "flange", **start: float) -> Driveline:
    """One inertia "J" with a component "x" on it."""
    return drive(("J.flange_b", f"x.{flange}"), J=Inertia(J=J, **start), x=component)
