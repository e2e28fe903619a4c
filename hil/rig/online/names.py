"""What a control client may read and write, by name, with units and ranges.

signal      every value of the signal table; some may be set, some may be held:
              set       a constant: a model input or sent signal that no link writes; it keeps the new value
              override  a value that something writes again and again (driver table, received frame, vehicle, link
                        to a model input): it is held at a value until it is released
parameter   a number of a component ("C4.fn_max", "car.m") or the gain of a table ("table.mu_C4.gain")
"""

from __future__ import annotations

import math

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import closest
from torqueloop.hil.control.messages import RequestError
from torqueloop.hil.rig.resolve.plan import RigPlan

#: groups of the signal table that something outside the model writes
_RECEIVED = ("driver.", "vehicle.")


@dataclass(frozen=True)
class SignalInfo:
    """One signal as a client sees it."""

    name: str
    slot: int
    unit: str
    set: bool
    override: bool
    low: float
    high: float

    def allowed(self) -> str:
        """The allowed range in words."""
        if math.isinf(self.low) and math.isinf(self.high):
            return "a finite number"
        return f"{self.low:g} .. {self.high:g} {self.unit}".rstrip()

    def check(self, value: float) -> None:
        """RequestError unless the value is in the range."""
        if not self.low <= value <= self.high:
            raise RequestError("refused", f"{self.name} = {value:g} {self.unit}; allowed: {self.allowed()}")


def signals(plan: RigPlan) -> dict[str, SignalInfo]:
    """All signals of a rig by name."""
    table = plan.table
    inputs = range(plan.in_slot, plan.in_slot + len(plan.compiled.input_names))
    written = {dst for _, dst, _, _ in (*plan.in_copies, *plan.out_copies)}
    ranges: dict[int, tuple[float, float]] = {}
    received: set[int] = set()
    constants: set[int] = set()
    for bus in plan.buses:
        for s in bus.database.signals:
            slot = bus.slot(s)
            low, high = s.minimum, s.maximum
            ranges[slot] = (-math.inf if low is None else low, math.inf if high is None else high)
            (received if s.receive else constants).add(slot)
    for slot, low, high in plan.limits:
        ranges.setdefault(slot, (low, high))
    # what is copied unchanged has the range of its other end
    for src, dst, gain, offset in plan.out_copies:
        if table.names[src].startswith(_RECEIVED) and (gain, offset) == (1.0, 0.0) and dst in ranges:
            ranges.setdefault(src, ranges[dst])
    for src, dst, gain, offset in plan.in_copies:
        if (gain, offset) == (1.0, 0.0) and src in ranges:
            ranges.setdefault(dst, ranges[src])
    for name, allowed in plan.compiled.parts.input_ranges.items():
        ranges.setdefault(table.slot(f"input.{name}"), allowed)
    found = {}
    for slot, name in enumerate(table.names):
        if slot < 2:
            continue
        held = slot in inputs or slot in received or name.startswith(_RECEIVED)
        free = (slot in inputs or slot in constants) and slot not in written
        low, high = ranges.get(slot, (-math.inf, math.inf))
        found[name] = SignalInfo(name, slot, table.units[slot], free, held, low, high)
    return found


def find(known: dict[str, SignalInfo], name: str, others: tuple[str, ...] = ()) -> SignalInfo:
    """The signal of a name; RequestError with the closest one if there is none."""
    try:
        return known[name]
    except KeyError:
        near = closest(name, [*known, *others])
        hint = f"; did you mean {near!r}?" if near else "; `list` shows all names"
        raise RequestError("refused", f"unknown name {name!r}{hint}") from None
