"""[controllers.NAME]: parameters become laws, names slots; and the tick's table of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any

from torqueloop.core.controls import CoolingFan, Driver2, FuelFlowController, GearboxController, IdleController
from torqueloop.core.controls.base import Compiled
from torqueloop.core.describe.errors import (
    ConfigError,
    MissingValueError,
    RangeError,
    UnknownKeyError,
    did_you_mean,
)
from torqueloop.core.describe.tables import Table1D
from torqueloop.cython_kernels.controls.laws import Law
from torqueloop.cython_kernels.controls.records import KINDS
from torqueloop.cython_kernels.tick.controllers import Controllers
from torqueloop.hil.rig.describe.controllers import ControllerTable, Read
from torqueloop.hil.rig.describe.signals import DUMMY, SignalTable

#: kind in a file -> class of core/controls
CLASSES: dict[str, type[Compiled]] = {
    c.kind: c for c in (CoolingFan, Driver2, FuelFlowController, GearboxController, IdleController)
}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


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


def add_signals(
    table: SignalTable, given: Mapping[str, ControllerTable], tick_s: float, file: str
) -> list[PlannedController]:
    """Signals controller.NAME.COMMAND and what each keeps, with their start values; ConfigError with table and key."""
    found = []
    for name, config in given.items():
        where = f"controllers.{name}"
        if not _NAME.fullmatch(name):
            raise ConfigError("{value} is no name of a controller", file=file, table="controllers", key=name,
                              value=name, allowed="letters, digits, _; the first one a letter")  # fmt: skip
        law = _controller(config, file, f"{where}.parameters").law()
        period = tick_s if config.period_s is None else config.period_s
        every = round(period / tick_s)
        if every < 1 or abs(every * tick_s - period) > 1e-9 * period:
            raise RangeError("{key} = {value} does not fit the tick", file=file, table=where, key="period_s",
                             value=period, allowed=f"a multiple of tick_s = {tick_s:g} s")  # fmt: skip
        own = KINDS[config.kind].own
        first = table.add_all((f"controller.{name}.{f.name}", f.unit) for f in own)
        table.initial.update({first + k: value for k, value in enumerate(law.own) if value})
        found.append(PlannedController(name, config, law, first, every))
    return found


def plan_reads(table: SignalTable, planned: list[PlannedController], file: str) -> None:
    """Fill in what each reads; ConfigError with its key."""
    for one in planned:
        where, ports = f"controllers.{one.name}.reads", {f.name: f.unit for f in KINDS[one.config.kind].reads}
        for key in one.config.reads:
            if key not in ports:
                problem = f"a controller of kind {one.config.kind} reads no {{key}}"
                raise UnknownKeyError(problem, file=file, table=where, key=key, allowed=", ".join(ports),
                                      hint=did_you_mean(key, ports))  # fmt: skip
        for key, unit in ports.items():
            if key not in one.config.reads:
                raise MissingValueError("nothing is wired to {key}", file=file, table=where, key=key,
                                        allowed=f"a signal in {unit}, or a number")  # fmt: skip
            one.reads.append(_source(table, one.config.reads[key], unit, file, where, key))


def _source(table: SignalTable, read: Read, unit: str, file: str, where: str, key: str) -> tuple[int, float, float]:
    """(slot, gain, offset). A driver's table has no unit of its own: it has that of what reads it."""
    if read.signal is None:
        return DUMMY, 0.0, float(read.value or 0.0)
    open_unit = read.converts or read.signal.startswith("driver.")
    slot = table.read_slot(read.signal, None if open_unit else unit, file, where, key)
    return slot, read.gain, read.offset


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


def make_controllers(planned: list[PlannedController], n_sig: int, tick_s: float) -> Controllers:
    """The tick's table of them."""
    made = Controllers(n_sig, len(planned), tick_s)
    for one in planned:
        made.add(one.law, one.first, one.every, one.reads)
    return made
