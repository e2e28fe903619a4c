"""Discrete-time controllers in pure Python and the loop that runs them beside a simulation.

A controller is an object with `step(t, measured) -> commands`, dictionaries of short names; it keeps its state from
call to call and is called at increasing times. The loop (loop.py) receives the signals for its names.
"""

from torqueloop.core.controls.base import Controller
from torqueloop.core.controls.cooling import CoolingFan
from torqueloop.core.controls.driver import Driver2
from torqueloop.core.controls.fuel_flow import FuelFlowController
from torqueloop.core.controls.gearbox import GearboxController
from torqueloop.core.controls.idle import IdleController
from torqueloop.core.controls.loop import ControlledRun, Wired, run_controlled

__all__ = [
    "ControlledRun", "Controller", "CoolingFan", "Driver2", "FuelFlowController", "GearboxController",
    "IdleController", "Wired", "run_controlled",
]  # fmt: skip
