"""The signal table: every value that travels through the rig has a name, a unit (SI) and a slot.

    TCU_Pressure_1.p_C4     received over CAN             input.C4.p     what the model gets
    driver.pedal            driver tables                 engine.w       what the model gives
    vehicle.F               from the vehicle process      HIL_Speeds.n_engine    what is sent over CAN
    rig.time, rig.status    the rig itself                link.F_wheel   what goes to the vehicle process
    bus.NAME.state          a native bus                  NAME.pin       what a control unit gives without a bus

A signal of a bus may have the bus's name in front (powertrain.TCU_Pressure_1.p_C4), and must where another bus has a
signal of the same name.

Names end here: the tick knows slots only (cython_kernels/tick/tick.pxd).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Any

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError, DuplicateError, UnknownNameError, did_you_mean
from torqueloop.core.describe.renamed import remedy, signals_in
from torqueloop.cython_kernels.tick.fault_rows import Code
from torqueloop.hil.common.conditions import parse_condition
from torqueloop.hil.common.levers import word_value

#: slot that always reads 0 and slot that swallows what nobody reads
DUMMY, SINK = 0, 1

#: units as written in core and in CAN databases -> the spelling used here
_ALIASES = {"": "1", "-": "1", "N.m": "Nm", "N*m": "Nm", "1/s": "rad/s", "km/h": "km/h", "deg": "deg", "s-1": "rad/s"}


def si_unit(unit: str | None) -> str:
    """Spelling of a unit in the table; nothing means a pure number."""
    text = (unit or "").strip()
    return _ALIASES.get(text, text)


@dataclass
class SignalTable:
    """Names, units and start values by slot."""

    names: list[str] = field(default_factory=lambda: ["dummy", "sink"])
    units: list[str] = field(default_factory=lambda: ["1", "1"])
    initial: dict[int, float] = field(default_factory=dict)
    #: short names that several buses have -> their names with the bus in front
    ambiguous: dict[str, list[str]] = field(default_factory=dict)
    #: names of signals that only the next tick of what computes them reads: recorded and listed if they are named
    internal: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._slot = {name: k for k, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: str) -> bool:
        return name in self._slot

    def add(self, name: str, unit: str | None, initial: float = 0.0) -> int:
        """A new signal; its slot."""
        if name in self._slot:
            raise DuplicateError("signal {value} exists twice", value=name)
        slot = len(self.names)
        self.names.append(name)
        self.units.append(si_unit(unit))
        self._slot[name] = slot
        if initial:
            self.initial[slot] = float(initial)
        return slot

    def alias(self, name: str, slot: int) -> None:
        """Another name of a signal."""
        self._slot.setdefault(name, slot)

    def add_all(self, names: Iterable[tuple[str, str | None]]) -> int:
        """Signals in consecutive slots; the first slot (also when there is none: the next free one)."""
        first = len(self.names)
        for name, unit in names:
            self.add(name, unit)
        return first

    def slot(self, name: str) -> int:
        """Slot of a signal; UnknownNameError with the closest name if there is none."""
        try:
            return self._slot[name]
        except KeyError:
            if name in self.ambiguous:
                choices = ", ".join(self.ambiguous[name])
                raise UnknownNameError("several buses have a signal {value}", value=name, allowed=choices) from None
            hint = remedy(name, signals_in(name)) or did_you_mean(name, self.names[2:])
            raise UnknownNameError("unknown signal {value}", value=name, hint=hint) from None

    def unit(self, name: str) -> str:
        """SI unit of a signal."""
        return self.units[self.slot(name)]

    def condition(self, text: str) -> Code:
        """The code of a condition on signals of the table; words of lever and gear are numbers. ConfigError."""
        return parse_condition(text).resolved(self.unit, word_value).code(self.slot)

    def read_slot(self, name: str, unit: str | None, file: str, table: str, key: str) -> int:
        """Slot of a signal that something configured reads, which must be in `unit` (None: in any). UnknownNameError,
        ConfigError with file, table and key."""
        where: dict[str, Any] = {"file": file, "table": table, "key": key}
        try:
            slot = self.slot(name)
        except UnknownNameError as error:
            raise error.located(**where) from None
        if unit is not None and self.unit(name) != unit:
            problem = f"{{key}}: {{value}} is in {self.unit(name)}"
            raise ConfigError(problem, **where, value=name, allowed=f"a signal in {unit}")
        return slot
