"""Kind "multibody": a tree of bodies as a participant of the rig, in lockstep on the virtual clock.

    [ecu.arm]
    kind = "multibody"
    start = "arm.toml"                              # configs/trees
    sensors = { "arm.t_y" = "body.t_y" }            # input of the tree -> signal of the rig
    actuators = { "arm.z_y" = "rad/s2" }            # output of the tree -> its unit; the rig's signal is arm.arm.z_y
    options = { period_s = 1e-3 }

In each period, the tree gets the rig's signals at t and steps from the previous time to t; its inputs are linear
between their values at both times. Its state, accelerations and forces at t reach the tick that begins at t. Rig and
tree therefore see each other one tick late. What is coupled stiffly belongs on one side: the rows of the file couple a
driveline on the tree to it exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from torqueloop.core.describe.errors import ConfigError, TorqueloopError, UnknownNameError, did_you_mean
from torqueloop.core.multibody.integrate import Stepper
from torqueloop.hil.common.config_file import ConfigTable, read_table
from torqueloop.hil.ecu.control_unit import EcuInputs, EcuOutputs, EcuSetup, ParticipantStats
from torqueloop.hil.multibody.build import BuiltFile, load_tree
from torqueloop.hil.multibody.outputs import instant, readers


class MultibodyOptions(ConfigTable):
    """[ecu.NAME.options] of a multibody model."""

    #: Time between two exchanges [s], a whole number of ticks.
    period_s: Annotated[float, Field(gt=0, le=1.0)] = 1e-3
    #: Values that replace those of its file: dotted key -> value.
    set: dict[str, Any] = {}


class TreeUnit:
    """A tree that receives its inputs each period."""

    def __init__(self, built: BuiltFile, period_s: float, sensors: tuple[str, ...], actuators: tuple[str, ...]) -> None:
        self.period_s: float = period_s
        self._built, self._sensors = built, sensors
        known = readers(built.system)
        self._read = [known[name][1] for name in actuators]
        self._stepper = Stepper(built.system, q=built.q, v=built.v)
        self._steps = max(1, round(period_s / built.config.tree.step_s + 0.499))
        self._t: float | None = None
        self.exchanges: int = 0

    def start(self) -> None:
        """Nothing to start: it runs where it is stepped."""

    def step(self, inputs: EcuInputs) -> EcuOutputs:
        """From the time before to this one; what is there. TorqueloopError: friction that cannot be decided."""
        for name, value in zip(self._sensors, inputs.sensors, strict=True):
            self._built.told[name].tell(inputs.t_s, value)
        if self._t is not None and inputs.t_s > self._t:
            self._stepper.advance(self._t, inputs.t_s - self._t, self._steps)
        self._t = inputs.t_s
        self.exchanges += 1
        if not self._read:
            return EcuOutputs()
        found = self._stepper.solution(inputs.t_s)
        now = instant(self._built.system, inputs.t_s, self._stepper.state, found, self._stepper.modes)
        return EcuOutputs((), tuple(read(now) for read in self._read))

    def save(self) -> dict[str, Any]:
        """State of the tree, its time, and its last inputs."""
        told = {name: [s.t0, s.y0, s.t1, s.y1] for name, s in self._built.told.items()}
        return {"tree": self._stepper.save(), "t": self._t, "told": told}

    def load(self, data: Mapping[str, Any]) -> None:
        """Inverse of save."""
        self._stepper.load(data["tree"])
        self._t = None if data["t"] is None else float(data["t"])
        for name, signal in self._built.told.items():
            signal.t0, signal.y0, signal.t1, signal.y1 = map(float, data["told"][name])

    def stop(self) -> ParticipantStats:
        """Counts for the report."""
        return ParticipantStats(reported={"exchanges": self.exchanges})


def make(setup: EcuSetup) -> TreeUnit:
    """The participant of a rig file."""
    where: dict[str, Any] = {"file": setup.rig_file or None, "table": setup.table or None}
    if setup.own_clock:
        raise ConfigError("a tree of bodies runs on the virtual clock only", **where, key="kind", value="multibody",
                          allowed="--clock virtual")  # fmt: skip
    if setup.file is None:
        raise ConfigError("kind multibody needs its file", **where, key="start", allowed="a file as in configs/trees")
    options = read_table(setup.options, MultibodyOptions, setup.rig_file, f"{setup.table}.options")
    sensors, actuators = tuple(p.name for p in setup.sensors), tuple(p.name for p in setup.actuators)
    built = load_tree(setup.file, sensors, options.set)
    known = readers(built.system)
    for pin in setup.actuators:
        if pin.name not in known:
            raise UnknownNameError(
                "the tree has no output {key}", file=setup.rig_file or None, table=f"{setup.table}.actuators",
                key=pin.name, value=pin.unit, hint=did_you_mean(pin.name, known),
            )  # fmt: skip
        if pin.unit != known[pin.name][0]:
            raise ConfigError("{key} = {value} has another unit", file=setup.rig_file or None,
                              table=f"{setup.table}.actuators", key=pin.name, value=pin.unit,
                              allowed=known[pin.name][0])  # fmt: skip
    try:
        return TreeUnit(built, options.period_s, sensors, actuators)
    except TorqueloopError as error:
        raise ConfigError(str(error), file=str(setup.file)) from None
