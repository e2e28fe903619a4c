"""[[steps]] of a scenario beside a simulation without a rig.

They are those of a rig that is nothing but its plant: the same plan, and the same state machine as in the tick. An
input that steps move is held over a tick, as on a rig. Conditions see the outputs after the tick before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.components.files import load
from torqueloop.core.describe.errors import ConfigError, UnknownNameError
from torqueloop.core.signals import Constant, Signal
from torqueloop.core.simulate.offline import Simulation
from torqueloop.cython_kernels.tick.scenario import SIGNALS, STATES
from torqueloop.hil.common.config_file import validate
from torqueloop.hil.rig.devices.registry import rig_model
from torqueloop.hil.rig.devices.steps import Steps
from torqueloop.hil.rig.resolve.plan import RigPlan, make_plan
from torqueloop.hil.scenario.scenario_tables import Scenario

Array = NDArray[np.float64]
INPUT = "input."
RUNNING = float(STATES.index("running"))


class OfflineSteps:
    """The steps of a scenario of a driveline: `tick` before every tick of its simulation."""

    def __init__(self, scenario: Scenario, simulation: Simulation, inputs: Mapping[str, Signal]) -> None:
        """ConfigError for a step that cannot be: a signal that is not there, a value out of its range."""
        self._simulation = simulation
        plan = _plan(scenario, simulation, inputs)
        table, steps = plan.table, plan.device(Steps)
        self._inputs, self._outputs = plan.in_slot, plan.out_slot
        self._steps = steps.scenario()
        self._values = np.zeros(len(table))
        for slot, value in table.initial.items():
            self._values[slot] = value
        self._steps.arm(self._values)
        #: (slot of an input, of the length of its move, name of the input)
        self._moved = [(slot, table.slot(f"scenario.{target}.ticks"), target.removeprefix(INPUT))
                       for slot, target in zip(steps.moved, steps.targets, strict=True)]  # fmt: skip
        self._given: dict[str, float] = {}
        self._state = table.slot("scenario.state")
        self._shown = [*(table.slot(f"scenario.{name}") for name in SIGNALS), *steps.moved]
        self._rows: list[Array] = []
        #: signals it adds to a recording, and their units
        self.names: list[str] = [table.names[slot] for slot in self._shown]
        self.units: list[str] = [table.units[slot] for slot in self._shown]

    def tick(self) -> bool:
        """The steps of the tick that comes next, into the inputs of the simulation; True: they were over before it."""
        simulation, values = self._simulation, self._values
        if values[self._state] != RUNNING:
            return True
        now = simulation.time
        for k, signal in enumerate(simulation.signals):
            values[self._inputs + k] = signal.after(now)
        values[self._outputs : self._outputs + len(simulation.model.output_names)] = simulation.outputs()
        self._steps.tick(values, len(self._rows))
        for slot, ticks, name in self._moved:
            # an input that no step has moved yet follows its table
            if values[ticks] >= 0.0 and self._given.get(name) != values[slot]:
                self._given[name] = float(values[slot])
                simulation.set_input(name, self._given[name])
        self._rows.append(values[self._shown])
        return False

    def rows(self, ticks: int) -> Array:
        """Its signals in each of the first `ticks` ticks."""
        return np.array(self._rows[:ticks])


def _plan(scenario: Scenario, simulation: Simulation, inputs: Mapping[str, Signal]) -> RigPlan:
    """The plan of a rig that is nothing but the plant, its inputs constant where no step moves them."""
    model, file = simulation.model, str(scenario.path)
    known = {**model.default_inputs, **inputs}
    start = {name: known.get(name, Constant(0.0)).after(0.0) for name in model.input_names}
    table = scenario.config.scenario
    data: dict[str, Any] = {
        "rig": {"name": table.name, "duration_s": table.duration_s},
        "plant": {"powertrain": str(scenario.driveline())},
        "clock": {"tick_s": simulation.h, "substeps": simulation.substeps},
        "inputs": {name: {"value": value} for name, value in start.items() if name not in model.derived_inputs},
        "steps": scenario.config.model_dump(include={"steps"}, exclude_unset=True)["steps"],
    }
    exact = {INPUT + source for source, _ in model.derived_inputs.values()}
    for number, step in enumerate(scenario.config.steps, 1):
        for name in step.set:
            if not name.startswith(INPUT):
                raise UnknownNameError("{key}: there is no driver for {value}", file=file, key="set", value=name,
                                       table=f"steps {number}", allowed='"input.NAME"')  # fmt: skip
        for name in exact & step.set.keys():
            raise ConfigError("{key}: {value} is an exact motion, which cannot jump", file=file, key="set",
                              value=name, table=f"steps {number}", allowed="[inputs], or exact = false")  # fmt: skip
    driveline = load(scenario.driveline(), scenario.overrides)
    return make_plan(scenario.path, validate(data, rig_model(), file), driveline, model)
