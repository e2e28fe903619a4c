"""What a rig's drives are held to: limits from [monitors], the highest gear from the gearbox file, shift lines and the
length of shifts from the file of its soft TCU."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.ecu.config import TcuConfig, load_tcu_config
from torqueloop.hil.ecu.gears import gear_number
from torqueloop.hil.results.monitors import Line, MonitorSpec, ShiftSchedule, number_of
from torqueloop.hil.rig.describe.config import RigConfig
from torqueloop.hil.rig.describe.monitor_table import Monitors
from torqueloop.hil.rig.describe.peer_tables import relative

RPM = math.pi / 30.0
#: kind of the control units whose schedule is a file
SOFT_TCU = "soft_tcu"


def monitor_spec(path: Path, config: RigConfig, driveline: Driveline) -> MonitorSpec:
    """The monitors of a rig; ConfigError where `reaches` is no gear of its gearbox."""
    table = config.monitors
    plain = limits_of(path, table, driveline.gears, config.rig.duration_s)
    tcu = _tcu(path, config)
    # the signal the control unit is told the pedal by, before its scaling
    told = (link.signal for key, link in config.outputs.items() if key.rpartition(".")[2] == "pedal")
    return replace(
        plain,
        shift_each_s={} if tcu is None else shift_lengths(tcu),
        overrun=[] if tcu is None else overrun_shifts(tcu),
        pedal=next((name for name in told if name), "driver.pedal"),
        brake=config.vehicle.brake if config.vehicle is not None else "driver.brake",
        schedule=None if tcu is None else schedule_of(tcu),
    )


def limits_of(path: Path, table: Monitors, gears: Iterable[str], duration_s: float) -> MonitorSpec:
    """The limits of a table [monitors], without a control unit's schedule."""
    limits = table.model_dump(exclude={"reaches", "source"})
    return MonitorSpec(reaches=_reaches(path, table.reaches, gears), duration_s=duration_s, **limits)


def _reaches(path: Path, gear: str, gears: Iterable[str]) -> int:
    if not gear:
        return 0
    numbers = sorted({number_of(name) for name in gears} - {0})
    if gear == "top":
        return numbers[-1] if numbers else 0
    if number_of(gear) not in numbers:
        raise ConfigError("{key} = {value} is no gear of this gearbox", file=str(path), table="monitors", key="reaches",
                          value=gear, allowed=f"top, {', '.join(map(str, numbers))}")  # fmt: skip
    return number_of(gear)


def _tcu(path: Path, config: RigConfig) -> TcuConfig | None:
    """The file of the rig's only soft TCU."""
    soft = [(name, ecu) for name, ecu in config.ecu.items() if ecu.kind == SOFT_TCU and ecu.start is not None]
    if len(soft) != 1:
        return None
    name, ecu = soft[0]
    assert ecu.start is not None
    try:
        file = relative(path, ecu.start, "tcu")
    except ConfigError as error:
        raise error.located(file=str(path), table=f"ecu.{name}", key="start") from None
    values = ecu.options.get("set", {})
    return load_tcu_config(file, values if isinstance(values, dict) else None)


def schedule_of(tcu: TcuConfig) -> ShiftSchedule:
    """Shift lines in SI, and the changes of gear the control unit has."""
    s = tcu.schedule

    def si(lines: dict[str, list[tuple[float, float]]]) -> dict[str, Line]:
        return {name: [(x / 100.0, y * RPM) for x, y in points] for name, points in lines.items()}

    return ShiftSchedule(
        up=si(s.up),
        down=si(s.down),
        kick_down={name: rpm * RPM for name, rpm in s.kick_down.items()},
        kick_down_on=s.kick_down_on_percent / 100.0,
        kick_down_off=s.kick_down_off_percent / 100.0,
        turbine_max_radps=s.turbine_max_rpm * RPM,
        turbine_force_up_radps=s.turbine_force_up_rpm * RPM,
        gear_time_s=s.min_gear_time_s,
        shifts=list(dict.fromkeys(pair for name in tcu.shifts if (pair := _pair(name)))),
    )


def shift_lengths(tcu: TcuConfig) -> dict[str, float]:
    """The longest that the phases of each shift between forward gears can take, under power and coasting [s]."""
    lengths: dict[str, float] = {}
    for name in tcu.shifts:
        if pair := _pair(name):
            phases = tcu.phases(name)
            fill = max((tcu.elements[e].fill_s for p in phases for e in p.elements), default=0.0)
            total = sum(p.duration_s + p.timeout_s for p in phases) + fill
            lengths[pair] = max(lengths.get(pair, 0.0), total)
    return lengths


def overrun_shifts(tcu: TcuConfig) -> list[str]:
    """Shifts that close nothing when the car coasts: a free wheel holds the new gear once the engine drives."""
    closing = ("fill", "kiss", "torque", "regulate", "line")

    def closes(name: str) -> bool:
        source, _, target = name.removesuffix(".coast").partition("-")
        new = set(tcu.gears[target].elements) - set(tcu.gears[source].elements)
        return any(law.law in closing for p in tcu.phases(name) for e, law in p.elements.items() if e in new)

    return [pair for name in tcu.shifts if name.endswith(".coast") and (pair := _pair(name)) and not closes(name)]


def _pair(name: str) -> str:
    """ "2-1" of "2-1E.coast"; "" where it is no change between forward gears."""
    low, _, high = name.removesuffix(".coast").partition("-")
    a, b = gear_number(low), gear_number(high)
    return f"{a}-{b}" if a and b and a != b else ""
