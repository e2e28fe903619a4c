"""The pins of a rig: what is wired to which channel of an I/O device, and which signal that is (`torqueloop wire`)."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from torqueloop.core.describe.classes import dataclass
from torqueloop.hil.rig.devices.device import RigPlan
from torqueloop.hil.rig.devices.io import IoCards, IoChannel, IoInput, IoOutput

#: drawing: height of a row, margins, left ends of the columns, width [px]
ROW, TOP, COLUMNS, WIDTH = 22, 40, (20, 200, 480, 660), 1100
INTO, FROM = "into the rig", "from the rig"


@dataclass(frozen=True)
class WiredPin:
    """One channel of a device, or one sensor or actuator of a control unit that is a program."""

    #: table of the rig file, io.NAME or ecu.NAME
    device: str
    #: the driver's name of the pin
    pin: str
    #: pin of the control unit's plug; "": not known
    plug: str
    #: INTO or FROM
    direction: str
    #: name of the signal of the rig
    signal: str
    #: where its value comes from (FROM), or what reads it (INTO), with the scaling
    linked: tuple[str, ...]
    #: unit of the value at the pin
    unit: str
    #: range of a channel, and what is written in the safe state (FROM)
    low: float | None = None
    high: float | None = None
    safe: float | None = None


def pin_list(plan: RigPlan) -> list[WiredPin]:
    """All pins of a rig, in the order of its file."""
    rows = []
    config = plan.config.model_dump()
    cards = plan.device(IoCards).given
    config |= {"io": {name: io.model_dump() for name, io in cards.io.items()}}
    for device in plan.devices:
        config |= {key: value for key, value in device.given.model_dump().items() if value is not None}
    for name, io in cards.io.items():
        for key, channel in io.inputs.items():
            rows.append(_channel(plan, config, f"io.{name}", key, channel))
        for key, output in io.outputs.items():
            rows.append(_channel(plan, config, f"io.{name}", key, output))
    for unit in plan.units:
        for pin, slot, symbol in unit.sensors:
            rows.append(WiredPin(f"ecu.{unit.name}", pin, "", FROM, plan.table.names[slot], (), symbol))
        for pin, symbol in unit.actuators:
            signal = f"{unit.name}.{pin}"
            rows.append(WiredPin(f"ecu.{unit.name}", pin, "", INTO, signal, _readers(config, signal), symbol))
    return rows


def _channel(plan: RigPlan, config: dict[str, Any], device: str, key: str, channel: IoChannel) -> WiredPin:
    signal, out = f"{device}.{key}", isinstance(channel, IoOutput)
    pin = channel.pin or key
    if isinstance(channel, IoInput):
        pin = scaled(pin, channel.gain, channel.offset)
    linked = (scaled(channel.signal, channel.gain, channel.offset),) if isinstance(channel, IoOutput) else None
    return WiredPin(
        device, pin, channel.plug, FROM if out else INTO, signal,
        _readers(config, signal) if linked is None else linked, plan.table.unit(signal), channel.low, channel.high,
        channel.safe if isinstance(channel, IoOutput) else None,
    )  # fmt: skip


def scaled(signal: str, gain: float, offset: float) -> str:
    """gain · signal + offset, without what changes nothing."""
    text = signal if gain == 1.0 else f"{gain:g} · {signal}"
    return text if offset == 0.0 else f"{text} {'+' if offset > 0 else '-'} {abs(offset):g}"


def _readers(config: dict[str, Any], signal: str) -> tuple[str, ...]:
    """Keys of the rig file that name a signal, with their scaling."""
    found = _links(config, signal, "")
    return tuple(key if (gain, offset) == (1.0, 0.0) else f"{key} = {scaled(signal, gain, offset)}"
                 for key, gain, offset in found)  # fmt: skip


def _links(value: Any, signal: str, key: str) -> Iterator[tuple[str, float, float]]:
    if value == signal:
        yield key, 1.0, 0.0
    elif isinstance(value, dict) and value.get("signal") == signal:
        yield key, float(value.get("gain") or 0.0) if "gain" in value else 1.0, float(value.get("offset") or 0.0)
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _links(inner, signal, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from _links(inner, signal, f"{key}[{number}]")


def drawing(rows: list[WiredPin]) -> str:
    """The pins as an SVG picture: pin of the control unit, pin of the device, signal, what it is linked to."""
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{TOP + ROW * (len(rows) + 1)}" '
             'font-family="sans-serif" font-size="12">']  # fmt: skip
    heads = ("control unit", "device", "signal", "linked to")
    lines += [f'<text x="{x}" y="20" font-weight="bold">{head}</text>' for x, head in zip(COLUMNS, heads, strict=True)]
    for number, row in enumerate(rows):
        y = TOP + ROW * number
        texts = (row.plug or "?", f"{row.device} {row.pin}", row.signal, "; ".join(row.linked))
        lines += [f'<text x="{x}" y="{y}">{escape(text)}</text>' for x, text in zip(COLUMNS, texts, strict=True)]
        # from the rig to the control unit the arrow points to the left
        begin, tip = COLUMNS[1] - 70, COLUMNS[1] - 10
        if row.direction == FROM:
            begin, tip = tip, begin
        side = 6 if begin < tip else -6
        lines.append(f'<path d="M{begin} {y - 4}H{tip}m{-side} -4l{side} 4l{-side} 4" fill="none" stroke="black"/>')
    return "\n".join([*lines, "</svg>\n"])
