"""Rig file + driveline + CAN databases -> everything the tick needs, checked as a whole before anything is started.

Every name of the rig file is resolved here (and in `wiring`): model inputs and outputs, "Message.signal" of the
databases, driver tables, the vehicle's signals. Units must agree; both sides of a link are SI, converted at their
borders.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from torqueloop.core.compile.compiler import CompiledModel, compile_driveline
from torqueloop.core.components.files import load
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import ConfigError
from torqueloop.core.describe.variants import OUTSIDE
from torqueloop.cython_kernels.can.codec import CodecTables
from torqueloop.hil.can.database import CanDatabase
from torqueloop.hil.can.load import message_names
from torqueloop.hil.common.config_layers import blamed_on
from torqueloop.hil.monitors.engine import STATE, own_signals, read_signals
from torqueloop.hil.rig.devices.device import BusPlan, RigPlan
from torqueloop.hil.rig.devices.hydraulics import HydraulicUnit
from torqueloop.hil.rig.devices.registry import device_kinds, load_rig_config
from torqueloop.hil.rig.devices.signals import SignalTable
from torqueloop.hil.rig.resolve.known import known_of
from torqueloop.hil.rig.resolve.monitors import monitor_spec
from torqueloop.hil.rig.resolve.wiring import Wiring
from torqueloop.hil.rig.resolve.words import with_words
from torqueloop.hil.rig.schema.links import Link
from torqueloop.hil.rig.schema.participants import relative
from torqueloop.hil.rig.schema.rig_file import RigConfig

__all__ = ["BUS_SIGNALS", "RigPlan", "load_plan", "make_plan"]

#: signals of a native bus, in the order of BUS_* in tick.pxd. state: 0 active, 1 warning, 2 passive,
#: 3 bus off, 4 interface down; tx_errors, rx_errors: error counters of the controller; the rest counts since arming
BUS_SIGNALS = ("state", "tx_errors", "rx_errors", "error_frames", "rx_dropped", "tx_lost")


def load_plan(path: str | Path, overrides: Mapping[str, Any] | None = None) -> RigPlan:
    """Read a rig file and everything it refers to; the first mistake raises a ConfigError or CompileError.

    overrides: dotted key -> value, instead of the file's (hil/common/config_layers.py)."""
    path = Path(path)
    with blamed_on(overrides, path):
        config = load_rig_config(path, overrides)
        try:
            powertrain = relative(path, config.plant.powertrain, "powertrains")
        except ConfigError as error:
            raise error.located(file=str(path), table="plant", key="powertrain") from None
        try:
            driveline = load(powertrain, config.plant.set)
        except ConfigError as error:
            if error.file == OUTSIDE:
                error.file, error.table = str(path), f"plant.set, {error.table or powertrain.name}"
            raise
        return make_plan(path, config, driveline, compile_driveline(driveline))


def make_plan(path: Path, config: RigConfig, driveline: Driveline, compiled: CompiledModel) -> RigPlan:
    """Resolve all names of a rig file against its driveline and its CAN databases."""
    databases = _databases(path, config, compiled)
    config = with_words(path, config, databases)
    table = SignalTable()
    firsts = _bus_signals(table, databases)
    for name, unit in (("rig.time", "s"), ("rig.tick", "1"), ("rig.status", "1"), ("rig.cause", "1")):
        table.add(name, unit)
    states = {
        name: table.add_all((f"bus.{name}.{signal}", "1") for signal in BUS_SIGNALS)
        for name, bus in config.bus.items()
        if bus.native
    }
    drivers = []
    for name, points in config.driver.items():
        slot = table.add(f"driver.{name}", "1", points[0][1])
        drivers.append((slot, [t for t, _ in points], [y for _, y in points]))
    plan = RigPlan(path, config, driveline, compiled, table, drivers=drivers)
    plan.devices += [kind(plan) for kind in device_kinds()]
    for device in plan.devices:
        device.signals()
    plan.in_slot = table.add_all(
        (f"input.{n}", u) for n, u in zip(compiled.input_names, compiled.input_units, strict=True)
    )
    plan.out_slot = table.add_all(zip(compiled.output_names, compiled.output_units, strict=True))
    for name, signal in compiled.default_inputs.items():
        if value := signal.value(0.0):
            table.initial[table.slot(f"input.{name}")] = value
            if f"vehicle.{name}" in table:
                table.initial[table.slot(f"vehicle.{name}")] = value
    oil = next((device for device in plan.devices if isinstance(device, HydraulicUnit)), None)
    plan.monitors = monitor_spec(path, config, driveline, compiled, databases, oil)
    if read_signals(plan.monitors):
        plan.monitor_slot = table.add_all((name, "1") for name in own_signals())
        table.internal.update(name for name in own_signals() if name.startswith(STATE))
    plan.buses += [
        BusPlan(name, k, config.bus[name], database, _codec(database, firsts[name], len(table)), firsts[name],
                state_slot=states.get(name, 0), known=known_of(path, config, name))
        for k, (name, database) in enumerate(databases.items())
    ]  # fmt: skip
    Wiring(plan).all()
    return plan


def _codec(database: CanDatabase, first: int, n_slots: int) -> CodecTables:
    shifted = [replace(m, signals=tuple(replace(s, slot=s.slot + first) for s in m.signals)) for m in database.messages]
    return CodecTables(shifted, n_slots)


def _bus_signals(table: SignalTable, databases: Mapping[str, CanDatabase]) -> dict[str, int]:
    """The signals of all buses: "Message.signal", or "bus.Message.signal" where several buses have it. First slots."""
    on: dict[str, list[str]] = {}
    for bus, database in databases.items():
        for signal in database.signals:
            on.setdefault(signal.full_name, []).append(bus)
    firsts = {}
    for bus, database in databases.items():
        firsts[bus] = len(table)
        for signal, start in zip(database.signals, database.initial_table(), strict=True):
            short = signal.full_name
            if len(on[short]) == 1:
                slot = table.add(short, signal.si_unit, float(start))
                table.alias(f"{bus}.{short}", slot)
            else:
                table.add(f"{bus}.{short}", signal.si_unit, float(start))
                table.ambiguous[short] = [f"{name}.{short}" for name in on[short]]
    return firsts


def _databases(path: Path, config: RigConfig, compiled: CompiledModel) -> dict[str, CanDatabase]:
    """The CAN database of each bus as the rig's node sees it, with every signal the rig file names."""
    found = {}
    needed = _needed(path, config, compiled)
    for name, bus in config.bus.items():
        try:
            file = relative(path, bus.database, "can")
        except ConfigError as error:
            raise error.located(file=str(path), table=f"bus.{name}", key="database") from None
        try:
            found[name] = CanDatabase.load(
                file,
                [bus.node, *bus.nodes],
                send=bus.send,
                receive=bus.receive,
                cycles_s=bus.cycle_s,
                needed=sorted(needed[name]),
                timeouts_s={"*": 0.0, **bus.rx_timeout_s},
                e2e={message: table.settings for message, table in bus.e2e.items()},
                whole=True,
            )
        except ConfigError as error:
            # what asks for the signal is the mistake as often as the database: both are named
            for table, links in (("inputs", config.inputs), ("outputs", config.outputs)):
                for key, link in links.items():
                    asked = link.signal if table == "inputs" else key
                    message, _, signal = (asked or "").removeprefix(f"{name}.").partition(".")
                    mistakes = (f"there is no message '{message}'", f"message {message} has no signal '{signal}'")
                    if any(mistake in error.problem for mistake in mistakes):
                        problem = "{key}" if table == "outputs" else "{key} = {value}"
                        raise ConfigError(f"{problem}: {error}", file=str(path), table=table, key=key,
                                          value=asked) from None  # fmt: skip
            # the database file is named already where it is at fault
            raise error.located(file=str(path), table=f"bus.{name}") from None
    return found


def _needed(path: Path, config: RigConfig, compiled: CompiledModel) -> dict[str, set[str]]:
    """bus -> names in the rig file that can only be signals of its database: outputs, and inputs from no other source.

    A name with a bus in front belongs to it, another one to the buses whose database has its message. Names of no
    message go to the first bus, whose database says what is wrong with them.
    """
    others = {*compiled.output_names, *(f"{ecu}.{pin}" for ecu, e in config.ecu.items() for pin in e.actuators)}

    def from_bus(link: Link) -> set[str]:
        name = link.signal
        return set() if name is None or name in others or name.partition(".")[0] in config.GROUPS else {name}

    sure = {*config.outputs, *(name for link in config.inputs.values() for name in from_bus(link))}
    # what goes out again may be a misspelled signal of the model as well: only what a database knows is taken for one
    perhaps = {name for link in config.outputs.values() for name in from_bus(link)} - sure
    needed: dict[str, set[str]] = {bus: set() for bus in config.bus}
    look = len(config.bus) > 1 or bool(perhaps)
    messages = {bus: _messages(path, bus, table.database) if look else set[str]() for bus, table in config.bus.items()}
    for name in (*sure, *perhaps) if config.bus else ():
        first, _, rest = name.partition(".")
        if first in needed and "." in rest:
            needed[first].add(rest)
            continue
        on = [bus for bus in needed if first in messages[bus]]
        for bus in on or (list(needed)[:1] if name in sure else []):
            needed[bus].add(name)
    return needed


def _messages(path: Path, bus: str, database: str) -> set[str]:
    """Names of the messages in the database of a bus."""
    try:
        return message_names(relative(path, database, "can"))
    except ConfigError as error:
        # a broken database is the fault of its own bus, whatever another one lacks for it
        raise error.located(file=str(path), table=f"bus.{bus}") from None
