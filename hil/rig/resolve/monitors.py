"""What a rig's drives are held to: gears from the gearbox file, signals from the rig file and its databases, limits
from [monitors], shift lines and the length of shifts from the file of its soft TCU."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from torqueloop.core.compile.compiler import CompiledModel
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import ConfigError
from torqueloop.cython_kernels.tick.monitors import NUMBERS
from torqueloop.hil.can.database import CanDatabase, SignalInfo
from torqueloop.hil.common.signal_words import plain_words, position
from torqueloop.hil.ecu.gears import gear_number
from torqueloop.hil.ecu.tcu_tables import TcuConfig, load_tcu_config
from torqueloop.hil.monitors.gearbox import gearbox_facts
from torqueloop.hil.results.monitors import Line, MonitorSpec, ReportedSpeed, ShiftSchedule, number_of
from torqueloop.hil.rig.devices.engine_control import EngineControl
from torqueloop.hil.rig.devices.hydraulics import HydraulicUnit
from torqueloop.hil.rig.devices.io import IoCards
from torqueloop.hil.rig.devices.steps import Steps, target_of
from torqueloop.hil.rig.schema.fault_tables import faults_of
from torqueloop.hil.rig.schema.monitor_table import Monitors
from torqueloop.hil.rig.schema.participants import relative
from torqueloop.hil.rig.schema.rig_file import RigConfig

RPM = math.pi / 30.0
#: (value of a signal, number of the gear)
Words = list[tuple[float, float]]
#: kind of the control units whose schedule is a file
SOFT_TCU = "soft_tcu"


def monitor_spec(path: Path, config: RigConfig, driveline: Driveline, compiled: CompiledModel,
                 databases: Mapping[str, CanDatabase], oil: HydraulicUnit | None) -> MonitorSpec:  # fmt: skip
    """The monitors of a rig with this hydraulic unit; ConfigError where `reaches` is no gear of its gearbox."""
    plain = driveline_spec(path, config.monitors, driveline, compiled, config.rig.duration_s,
                           "car" if config.vehicle is None else config.vehicle.car)  # fmt: skip
    tcu = _tcu(path, config)
    signals = dict(plain.signals)
    # the pedal that the control unit receives, before its scaling
    reported = (link.signal for key, link in config.outputs.items() if key.rpartition(".")[2] == "pedal")
    signals["pedal"] = next((name for name in reported if name), "driver.pedal")
    signals["brake"] = config.vehicle.brake if config.vehicle is not None else "driver.brake"
    signals["lever"] = "driver.lever"
    signals["cause"] = "rig.cause"
    words = _unit_signals(config, databases)
    signals |= {fact: name for fact, (name, _) in words.items()}
    there = {f"driver.{name}" for name in config.driver} | _stepped(config)
    signals = {fact: name for fact, name in signals.items() if not name.startswith("driver.") or name in there}
    return replace(
        plain,
        signals=signals,
        reported=words["reported"][1] if "reported" in words else [],
        asked=words["asked"][1] if "asked" in words else [],
        pairs=_reported_speeds(config, compiled, databases),
        pedals=_reported_pedals(config, databases),
        answer_s=_cycle_s(signals.get("answer", ""), databases),
        actuators=_actuators(config, databases, oil),
        shift_each_s={} if tcu is None else shift_lengths(tcu),
        engine_above_radps=0.0 if tcu is None else tcu.garage.engine_above_rpm * RPM,
        schedule=None if tcu is None else schedule_of(tcu),
    )


def driveline_spec(path: Path, table: Monitors, driveline: Driveline, compiled: CompiledModel, duration_s: float,
                   car: str = "car") -> MonitorSpec:  # fmt: skip
    """What a driveline alone says: gearbox, speeds, torques, engine."""
    names = set(compiled.output_names)
    signals: dict[str, str] = {}

    def take(fact: str, *candidates: str) -> None:
        name = next((c for c in candidates if c in names), None)
        if name is not None:
            signals[fact] = name

    if driveline.gearbox is not None:
        take("w_in", f"{driveline.gearbox.input}.w")
        take("w_out", f"{driveline.gearbox.output}.w")
    take("v", f"{car}.v")
    take("a", f"{car}.a")
    for name, component in driveline.components.items():
        if component.kind == "LockUpTC":
            take("tau_in", f"{name}.tau_turbine")
        if component.kind == "Engine":
            take("engine", f"{name}.w")
    take("tau_lockup", "lockup.tau")
    take("lockup_mode", "lockup.mode")
    for name in compiled.input_names:
        if name.rpartition(".")[2] == "pedal":
            take("pedal", name)
    return MonitorSpec(
        gearbox_facts(driveline, car), signals, limits=dict(table.limit), waived=dict(table.waive),
        reaches=_reaches(path, table.reaches, driveline.gears), duration_s=duration_s,
    )  # fmt: skip


def _stepped(config: RigConfig) -> set[str]:
    """Signals of the driver that only its steps set."""
    return {target_of(name) for step in Steps.tables_of(config).steps for name in step.set}


def _unit_signals(config: RigConfig, databases: Mapping[str, CanDatabase]) -> dict[str, tuple[str, Words]]:
    """Signals of the control unit by fact, with what their values mean as gears."""
    found: dict[str, tuple[str, Words]] = {}
    table = config.monitors
    for fact, own, named in (("reported", table.reported, "gear_actual"), ("asked", table.asked, "gear_target")):
        for bus, database in databases.items():
            for signal in database.signals:
                name = f"{bus}.{signal.full_name}"
                wanted = own in (name, signal.full_name) if own else signal.name == named
                if fact not in found and wanted and signal.receive:
                    found[fact] = (name, _gear_words(signal))
    for fact, own in (("park", table.park), ("request", table.request), ("answer", table.answer)):
        if own:
            found[fact] = (own, [])
    engine = EngineControl.tables_of(config).engine_control
    if engine is not None and engine.active is not None and engine.active_value is None:
        found.setdefault("request", (engine.active, []))
    for key, link in config.outputs.items():
        if link.signal == "engine_control.intervention":
            found.setdefault("answer", (key, []))
    return found


def _gear_words(signal: SignalInfo) -> Words:
    """(value, number of the gear) by the value table of a signal; without one the numbers are the gears."""
    words = [(raw * signal.scale + signal.offset, gear) for raw, word in signal.choices.items()
             if (gear := _gear_of_word(word)) is not None]  # fmt: skip
    return words or [(float(k), float(k)) for k in range(1, 12)]


def _gear_of_word(word: str) -> float | None:
    text = position(word) or word.strip()
    if text in NUMBERS:
        return float(NUMBERS[text])
    return float(number_of(text)) if number_of(text) else None


def _cycle_s(name: str, databases: Mapping[str, CanDatabase]) -> float:
    """Cycle time of the message of a signal that is sent."""
    sent = ((f"{bus}.", m) for bus, database in databases.items() for m in database.tx_messages)
    return next((m.cycle_ns * 1e-9 for bus, m in sent if name.removeprefix(bus).startswith(f"{m.name}.")), 0.0)


def _reported_speeds(config: RigConfig, compiled: CompiledModel,
                 databases: Mapping[str, CanDatabase]) -> list[ReportedSpeed]:  # fmt: skip
    """Speeds of shafts that are sent as they are; one that a fault changes on purpose is left out."""
    units = dict(zip(compiled.output_names, compiled.output_units, strict=True))
    spoilt = {fault.signal for fault in faults_of(config)}
    known = {s.full_name: s for d in databases.values() for s in d.signals}
    known |= {f"{bus}.{s.full_name}": s for bus, d in databases.items() for s in d.signals}
    made = []
    for key, link in config.outputs.items():
        if link.signal is None or units.get(link.signal) != "rad/s" or key not in known or {key, link.signal} & spoilt:
            continue
        low, high = known[key].minimum, known[key].maximum
        made.append(ReportedSpeed(key, link.signal, -1e9 if low is None else low, 1e9 if high is None else high))
    return made


def _reported_pedals(config: RigConfig, databases: Mapping[str, CanDatabase]) -> list[tuple[str, str]]:
    """Pedals, 0..1, that are sent as a pedal by the name of their signal, and those of the engine; one that a fault
    changes is left out, and so is one that an I/O device reads in another unit."""
    spoilt = {fault.signal for fault in faults_of(config)}
    sent = {name for bus, d in databases.items() for s in d.signals if s.si_unit == "1"
            and "pedal" in plain_words(s.name) for name in (s.full_name, f"{bus}.{s.full_name}")}  # fmt: skip
    links = [(key, link.signal) for key, link in config.outputs.items() if key in sent]
    links += [(f"input.{key}", link.signal) for key, link in config.inputs.items() if key.endswith(".pedal")]
    volts = {f"io.{device}.{name}" for device, io in IoCards.tables_of(config).io.items()
             for name, channel in io.inputs.items() if channel.unit != "1"}  # fmt: skip
    return [(key, source) for key, source in links
            if source is not None and source.endswith(".pedal") and not {key, source} & (spoilt | volts)]  # fmt: skip


def _actuators(config: RigConfig, databases: Mapping[str, CanDatabase], oil: HydraulicUnit | None) -> list[str]:
    """Pins of control units, and currents they send. One that serves a single shift element is left out: a gear that
    is not driven needs no element, and of one that is driven the monitors of gears find whether its elements close."""
    found = [f"{name}.{pin}" for name, ecu in config.ecu.items() for pin in ecu.actuators]
    for bus, database in databases.items():
        front = f"{bus}." if len(databases) > 1 else ""
        found += [front + s.full_name for s in database.signals if s.receive and s.si_unit == "A"]
    single = {link.signal for key, link in config.inputs.items() if key.endswith(".p")}
    if oil is not None:
        single |= oil.commands_of_one_circuit()
    return [name for name in found if name not in single]


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
        upshift_brake=s.upshift_brake_percent / 100.0,
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


def _pair(name: str) -> str:
    """ "2-1" of "2-1E.coast"; "" where it is no change between forward gears."""
    low, _, high = name.removesuffix(".coast").partition("-")
    a, b = gear_number(low), gear_number(high)
    return f"{a}-{b}" if a and b and a != b else ""
