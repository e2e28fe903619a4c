"""[controllers.NAME] of a rig file: controllers that run in the tick.

Laws: cython_kernels/controls/laws.pyx; ranges of their parameters: core/controls.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import MISSING, field, fields
from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from torqueloop.core.controls import CoolingFan, Driver2, FuelFlowController, GearboxController, IdleController
from torqueloop.core.controls.base import Compiled
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import (
    ConfigError,
    MissingValueError,
    RangeError,
    UnknownKeyError,
    did_you_mean,
)
from torqueloop.core.describe.tables import Table1D
from torqueloop.cython_kernels.can.codec import RxState
from torqueloop.cython_kernels.controls.laws import Law
from torqueloop.cython_kernels.controls.records import KINDS
from torqueloop.cython_kernels.tick.controllers import Controllers as ControllerMemory
from torqueloop.cython_kernels.tick.rig import Rig
from torqueloop.hil.common.config_file import ConfigTable
from torqueloop.hil.rig.devices.device import Device
from torqueloop.hil.rig.devices.signals import DUMMY
from torqueloop.hil.rig.schema.links import SHORT, Link

#: kind in a file -> class of core/controls
CLASSES: dict[str, type[Compiled]] = {
    c.kind: c for c in (CoolingFan, Driver2, FuelFlowController, GearboxController, IdleController)
}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


#: points [x, y], and a curve of them
_POINT: dict[str, Any] = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
_CURVE: dict[str, Any] = {"type": "array", "minItems": 1, "items": _POINT}
#: what `parameters` may hold in a file (_controller reads it)
PARAMETERS_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": {"anyOf": [{"type": "number"}, _CURVE, {"type": "array", "items": _CURVE}]},
}


class Read(Link):
    """[controllers.NAME.reads.NAME]: where the controller gets a number from."""

    #: Constant in SI instead of a signal.
    value: float | None = None


class ControllerTable(ConfigTable):
    """[controllers.NAME]: a controller that runs in the tick. Its commands are the signals controller.NAME.COMMAND."""

    #: Law of the controller, see docs/controllers.md.
    kind: Literal["cooling_fan", "driver", "fuel_flow", "gearbox", "idle"]
    #: Time between two calls [s], a whole number of ticks. By default each tick calls the controller. Its commands are
    #: constant between two calls.
    period_s: Annotated[float, Field(gt=0, le=10)] | None = None
    #: Quantity that the controller reads -> a signal, { signal = ..., gain = ..., offset = ... }, or a number in SI.
    reads: dict[str, Annotated[Read, SHORT]] = {}
    #: Parameter -> number in SI, curve [[x, y], ...], or list of curves. Parameters that are left out have their
    #: defaults.
    parameters: Annotated[dict[str, Any], WithJsonSchema(PARAMETERS_SCHEMA)] = {}


@dataclass(frozen=True)
class PlannedController:
    """One of them with slots for names."""

    name: str
    config: ControllerTable
    law: Law
    #: slot of its first own signal
    first: int
    #: ticks between two calls
    every: int
    #: (slot, gain, offset) in the order of the law
    reads: list[tuple[int, float, float]] = field(default_factory=list)


class ControllerTables(ConfigTable):
    """What the rig file has of them."""

    #: Controllers by name. The tick calls them in this order; their commands are the signals controller.NAME.COMMAND,
    #: see docs/controllers.md.
    controllers: dict[str, ControllerTable] = {}


class Controllers(Device[ControllerTables]):
    """Signals controller.NAME.COMMAND, and what each controller keeps, with their start values."""

    TABLES = ControllerTables
    GROUPS = ("controller",)

    def signals(self) -> None:
        self.planned = [self._one(name, config) for name, config in self.given.controllers.items()]

    def _one(self, name: str, config: ControllerTable) -> PlannedController:
        where = f"controllers.{name}"
        if not _NAME.fullmatch(name):
            raise ConfigError("{value} is no name of a controller", file=self.file, table="controllers", key=name,
                              value=name, allowed="letters, digits, _; the first one a letter")  # fmt: skip
        law = _controller(config, self.file, f"{where}.parameters").law()
        period = self.tick_s if config.period_s is None else config.period_s
        every = round(period / self.tick_s)
        if every < 1 or abs(every * self.tick_s - period) > 1e-9 * period:
            raise RangeError("{key} = {value} does not fit the tick", file=self.file, table=where, key="period_s",
                             value=period, allowed=f"a multiple of tick_s = {self.tick_s:g} s")  # fmt: skip
        own = KINDS[config.kind].own
        first = self.table.add_all((f"controller.{name}.{f.name}", f.unit) for f in own)
        self.table.initial.update({first + k: value for k, value in enumerate(law.own) if value})
        return PlannedController(name, config, law, first, every)

    def plan(self) -> None:
        for one in self.planned:
            where, ports = f"controllers.{one.name}.reads", {f.name: f.unit for f in KINDS[one.config.kind].reads}
            for key in one.config.reads:
                if key not in ports:
                    problem = f"a controller of kind {one.config.kind} reads no {{key}}"
                    raise UnknownKeyError(problem, file=self.file, table=where, key=key, allowed=", ".join(ports),
                                          hint=did_you_mean(key, ports))  # fmt: skip
            for key, unit in ports.items():
                if key not in one.config.reads:
                    raise MissingValueError("nothing is wired to {key}", file=self.file, table=where, key=key,
                                            allowed=f"a signal in {unit}, or a number")  # fmt: skip
                one.reads.append(self._source(one.config.reads[key], where, key, unit))

    def _source(self, read: Read, where: str, key: str, unit: str) -> tuple[int, float, float]:
        """(slot, gain, offset). A driver's table has no unit of its own: it has that of what reads it."""
        if read.signal is None:
            return DUMMY, 0.0, float(read.value or 0.0)
        open_unit = read.converts or read.signal.startswith("driver.")
        return self.read_slot(read.signal, where, key, None if open_unit else unit), read.gain, read.offset

    def make(self, tick: Rig, received: Sequence[RxState]) -> None:
        if self.planned:
            made = ControllerMemory(len(self.table), len(self.planned), self.tick_s)
            for one in self.planned:
                made.add(one.law, one.first, one.every, one.reads)
            tick.set_controllers(made)


def _controller(config: ControllerTable, file: str, where: str) -> Compiled:
    """The controller with the parameters of the file; ConfigError with its key."""
    cls = CLASSES[config.kind]
    curves = {name: several for name, _, several in KINDS[config.kind].curves}
    known = {f.name: f for f in fields(cls)}
    given: dict[str, Any] = {}
    for key, value in config.parameters.items():
        if key not in known:
            raise UnknownKeyError(f"a controller of kind {config.kind} has no {{key}}", file=file, table=where, key=key,
                                  value=value, allowed=", ".join(known), hint=did_you_mean(key, known))  # fmt: skip
        try:
            if key in curves:
                given[key] = tuple(_curve(one) for one in _list(value)) if curves[key] else _curve(value)
            else:
                given[key] = _number(value, known[key].type == "int")
        except ConfigError as error:
            error.value = value
            raise error.located(file=file, table=where, key=key) from None
    for name, f in known.items():
        if name not in given and f.default is MISSING and f.default_factory is MISSING:
            raise MissingValueError("missing key '{key}'", file=file, table=where, key=name)
    try:
        return cls(**given)
    except ConfigError as error:
        raise error.located(file=file, table=where) from None


def _number(value: Any, whole: bool) -> float:
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        raise ConfigError("{key} = {value} is not allowed", allowed="a whole number" if whole else "a number")
    return value if whole else float(value)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ConfigError("{key} = {value} is not allowed", allowed="a list of curves [[x, y], ...]")
    return value


def _curve(value: Any) -> Table1D:
    points = value if isinstance(value, list) else []
    if not points or not all(isinstance(p, list | tuple) and len(p) == 2 for p in points):
        raise ConfigError("{key} = {value} is not allowed", allowed="points [[x, y], ...] in SI")
    return Table1D(tuple(_number(x, False) for x, _ in points), tuple(_number(y, False) for _, y in points))
