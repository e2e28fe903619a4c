"""Messages that are sent on a change or event: [bus.NAME.sending] and the database -> rows for the tick."""

from __future__ import annotations

from typing import Any

from torqueloop.core.describe.errors import ConfigError, UnknownNameError, did_you_mean
from torqueloop.cython_kernels.can.codec_spec import MessageSpec
from torqueloop.cython_kernels.tick.fault_rows import NEVER
from torqueloop.cython_kernels.tick.send_rows import SendRow
from torqueloop.hil.can.sending import BOTH, CYCLIC, ON_CHANGE, ON_EVENT
from torqueloop.hil.rig.devices.device import BusPlan, RigPlan
from torqueloop.hil.rig.schema.participants import Sending


def send_kind(bus: BusPlan, message: MessageSpec) -> str:
    """One of CYCLIC, ON_CHANGE, ON_EVENT, BOTH."""
    given = bus.config.sending.get(message.name)
    if given is not None:
        return given.type
    # a cycle time in the rig file is meant
    return BOTH if message.send_kind == ON_CHANGE and message.name in bus.config.cycle_s else message.send_kind


def is_cyclic(kind: str) -> bool:
    """The clock sends it, too."""
    return kind in (CYCLIC, BOTH)


def send_row(plan: RigPlan, bus: BusPlan, message: MessageSpec, kind: str, period: int, offset: int) -> SendRow:
    """The row of a message that not only the clock sends; period 0: the clock does not."""
    given = bus.config.sending.get(message.name) or Sending(type=kind)  # type: ignore[arg-type]
    where: dict[str, Any] = {"file": str(plan.path), "table": f"bus.{bus.name}.sending.{message.name}"}
    index = bus.database.message_index(message.name)
    slots = {s.name: bus.first_slot + s.slot for s in message.signals}
    for name in given.signals:
        if name not in slots:
            raise UnknownNameError("{key}: the message has no signal {value}", **where, key="signals", value=name,
                                   hint=did_you_mean(name, slots))  # fmt: skip
    names = (given.signals or list(slots)) if kind in (ON_CHANGE, BOTH) else []
    when = NEVER
    if given.when is not None:
        try:
            when = plan.table.condition(given.when)
        except ConfigError as error:
            raise error.located(**where, key="when") from None
    gap_s = message.gap_ns * 1e-9 if given.gap_s is None else given.gap_s
    gap = max(1, round(gap_s / plan.config.clock.tick_s))
    repeats = message.repeats if given.repeats is None else given.repeats
    signals = tuple(bus.codec.signal_index(index, slots[name]) for name in names)
    return SendRow(index, period, offset, signals, when, gap, repeats)


__all__ = ["ON_EVENT", "is_cyclic", "send_kind", "send_row"]
