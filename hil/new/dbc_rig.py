"""A rig file for a control unit that is known by its CAN database: every binding that names and units give, and a
mark where they give none.

What is found: signals that the control unit's node receives and that mean a quantity of the car (WANTED), and pressures
of shift elements that it sends. Nothing is guessed beyond name and unit: what has no source is written as a comment
with the value it gets instead.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from torqueloop.core.compile.compiler import CompiledModel, compile_driveline
from torqueloop.core.components.files import load
from torqueloop.core.describe.errors import ConfigError, UnknownNameError, did_you_mean
from torqueloop.hil.can.load import Loader, read_database
from torqueloop.hil.can.traffic import Traffic
from torqueloop.hil.can.units import SiUnit, si_unit

#: cycle time of a message that the database gives none [s]
ASSUMED_S = 0.01
#: mark of what a reader has to look at
MARK = "# ?"


@dataclass(frozen=True)
class Quantity:
    """A quantity of the car: the rig's signal, its SI unit, words that the names of CAN signals have for it."""

    signal: str
    unit: str
    words: str
    #: words that make it something else
    not_words: str = r"(?!)"

    def is_meant(self, name: str, unit: SiUnit) -> bool:
        """A CAN signal of this name and unit means it. A pure number that is not in per cent is a switch or status."""
        if unit.symbol == "1" and unit.factor != Fraction(1, 100):
            return False
        text = re.sub(r"[_.]+", " ", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)).lower()
        return unit.symbol == self.unit and bool(re.search(self.words, text)) and not re.search(self.not_words, text)


_OTHER = r"target|tgt|idl|soll|setpoint|desired|wunsch|request|limit|max|min|gradient|leerlauf|valid|fehler|error"
#: in the order in which they are tried
WANTED = (
    Quantity("engine.w", "rad/s",
             r"\b(n engine|n mot\w*|eng\w* ?(speed|rpm|spd)|motordrehzahl|n ?eng|nmot|rpm engine)\b|^n$", _OTHER),
    Quantity("turbine.w", "rad/s", r"turb|n ?in(put)?\b|input shaft", _OTHER),
    Quantity("out.w", "rad/s", r"\bn ?out(put)?\b|output shaft|abtrieb|kardan", _OTHER),
    Quantity("car.v", "m/s", r"veh\w*|\bv\b|speed|geschw|tacho|^vs$", _OTHER),
    Quantity("driver.pedal", "1", r"pedal ?(pos|wert|value)?|accel\w*|gas|fahrpedal|throttle|drosselkl|\bpv\b",
             _OTHER + r"|brake|brems|clutch|kuppl"),
    Quantity("driver.brake", "1", r"\bbrake ?(pedal)?\b|brems", _OTHER + r"|temp"),
    Quantity("engine.tau", "Nm", r"eng\w* ?(torque|tq)|motormoment|torque engine|tau engine|istmoment|indicated",
             _OTHER),
)  # fmt: skip


@dataclass
class Draft:
    """What was found."""

    database: str
    node: str
    #: nodes the rig is instead of
    nodes: list[str] = field(default_factory=list)
    inputs: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    #: messages sent, and those of them without a cycle time
    send: list[str] = field(default_factory=list)
    uncertain: list[str] = field(default_factory=list)
    receive: list[str] = field(default_factory=list)
    #: model inputs nothing was found for; signals of the control unit nothing uses; signals sent with their start value
    no_input: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    constant: list[str] = field(default_factory=list)
    #: messages left out, with the reason
    skipped: dict[str, str] = field(default_factory=dict)


def draft(database: Path, node: str, model: CompiledModel) -> Draft:
    """Bindings between a database, whose `node` is the control unit, and a car; ConfigError for what is not there."""
    raw = read_database(database)
    nodes = [n.name for n in raw.nodes]
    if node not in nodes:
        raise UnknownNameError("{key}: the database has no node {value}", file=str(database), key="node", value=node,
                               allowed=", ".join(nodes), hint=did_you_mean(node, nodes))  # fmt: skip
    from_unit = [m.name for m in raw.messages if node in m.senders]
    to_unit = [m for m in raw.messages if node in m.receivers and node not in m.senders]
    if not from_unit and not to_unit:
        raise ConfigError("{key} = {value}: it neither sends nor receives a message", file=str(database), key="node",
                          value=node)  # fmt: skip
    made = Draft(database.name, node)
    others = dict.fromkeys(n for m in to_unit for n in m.senders)
    made.nodes = [n for n in others if n in nodes] or [n for n in nodes if n != node][:1]
    if not made.nodes:
        raise ConfigError("the database has no node but {value}", file=str(database), key="node", value=node)
    # what the codec refuses is left out, with its reason
    names = [m.name for m in to_unit]
    loader = Loader(database, Traffic((made.nodes[0],), tuple(names), tuple(from_unit)), [], {}, {}, True, True)
    usable = _usable(loader, {*names, *from_unit}, made)
    made.send = [name for name in names if name in usable]
    made.receive = [name for name in from_unit if name in usable]
    made.uncertain = [m.name for m in to_unit if m.name in usable and not m.cycle_time]
    _bind_outputs(made, [m for m in to_unit if m.name in usable], model)
    _bind_inputs(made, [m for m in raw.messages if m.name in made.receive], model)
    return made


def _usable(loader: Loader, names: set[str], made: Draft) -> set[str]:
    """Messages the codec can handle. The loader stops at the first that is asked for and wrong: asked one by one."""
    usable = set()
    for name in sorted(names):
        sent = name in (loader.traffic.send or ())
        traffic = Traffic(loader.traffic.nodes, (name,) if sent else (), () if sent else (name,))
        one = Loader(loader.path, traffic, [], {}, {}, True, True)
        try:
            one.load()
        except ConfigError as error:
            made.skipped[name] = error.problem
        else:
            usable.add(name)
    return usable


def _bind_outputs(made: Draft, messages: list[Any], model: CompiledModel) -> None:
    known = {*model.output_names, "driver.pedal", "driver.brake"}
    for message in messages:
        for signal in message.signals:
            unit = si_unit(signal.unit)
            name = f"{message.name}.{signal.name}"
            found = next(
                (q.signal for q in WANTED
                 if unit is not None and q.signal in known and q.is_meant(signal.name, unit)),
                None,
            )  # fmt: skip
            if found is not None:
                made.outputs[name] = found
            else:
                made.constant.append(f"{name} [{signal.unit or '-'}]")


def _bind_inputs(made: Draft, messages: list[Any], model: CompiledModel) -> None:
    elements = [n.removesuffix(".p") for n in model.input_names if n.endswith(".p")]
    used = set()
    for element in elements:
        word = "lu|lock ?up|wk|tcc" if element == "lockup" else re.escape(element.lower())
        for message in messages:
            for signal in message.signals:
                unit = si_unit(signal.unit)
                text = re.sub(r"[_.]+", " ", signal.name).lower()
                if unit is not None and unit.symbol == "Pa" and re.search(rf"\b({word})\b", text):
                    made.inputs.setdefault(f"{element}.p", f"{message.name}.{signal.name}")
                    used.add((message.name, signal.name))
    made.no_input = [f"{e}.p" for e in elements if f"{e}.p" not in made.inputs]
    made.unused = [f"{m.name}.{s.name} [{s.unit or '-'}]" for m in messages for s in m.signals
                   if (m.name, s.name) not in used]  # fmt: skip


def compiled_car(path: Path) -> CompiledModel:
    """The model of a car's file."""
    return compile_driveline(load(path))


def rig_from_database(name: str, powertrain: str, vehicle: str, database: str, made: Draft, model: CompiledModel,
                      interface: str, channel: str) -> str:  # fmt: skip
    """The rig file, commented; MARK stands where something is to be looked at."""
    lines = [
        f"# {name}: a rig for {made.node} of {made.database}. Written by `torqueloop new rig --dbc`.",
        f"# Bound by names and units: {len(made.outputs)} signals sent, {len(made.inputs)} received. Lines with"
        f" '{MARK}' are to be looked at;",
        "# `torqueloop check` says what is wrong, `torqueloop bus scan` what is on the bus. docs/connect_your_ecu.md",
        "", "[rig]", f'name = "{name}"', "duration_s = 60.0", "", "[plant]", f'powertrain = "{powertrain}"', "",
        "[bus.powertrain]", f'interface = "{interface}"', f'channel = "{channel}"', f'database = "{database}"',
        f'node = "{made.nodes[0]}"',
        f"nodes = {_strings(made.nodes[1:])}", f"send = {_strings(made.send)}", f"receive = {_strings(made.receive)}",
        "restbus = true",
    ]  # fmt: skip
    if not made.send:
        lines.append(f"{MARK} the database does not list {made.node} as a receiver: name in `send` what it needs")
    if made.uncertain:
        cycles = ", ".join(f"{m} = {ASSUMED_S}" for m in made.uncertain)
        lines += [f"{MARK} the database has no cycle time of these: {1e3 * ASSUMED_S:g} ms assumed",
                  f"cycle_s = {{ {cycles} }}"]  # fmt: skip
    lines += [f"{MARK} left out: {name}: {why}" for name, why in made.skipped.items()]
    lines += ["", "[ecu.unit]", 'kind = "hardware"', f'node = "{made.node}"', "", "[vehicle]", f'start = "{vehicle}"',
              "", "# model input = signal", "[inputs]"]  # fmt: skip
    lines += [f'"{key}" = "{signal}"' for key, signal in made.inputs.items()]
    lines += [f'"{key}" = 0.0    {MARK} {made.node} sends no pressure of this name' for key in made.no_input]
    lines += [f'"{key}" = "{source}"' for key, source in (
        ("engine.pedal", "driver.pedal"), ("road.F", "vehicle.F"), ("road.F_hold", "vehicle.F_hold"),
    ) if key in model.input_names]  # fmt: skip
    if made.unused:
        lines += [f"{MARK} sent by {made.node} and not used:", *(f"#   {signal}" for signal in made.unused)]
    lines += ["", "# signal to send = signal of the model or driver; all others take the database's start value",
              "[outputs]"]  # fmt: skip
    lines += [f'"{key}" = "{signal}"' for key, signal in made.outputs.items()]
    if made.constant:
        lines += [f"{MARK} constant at its start value:", *(f"#   {signal}" for signal in made.constant)]
    lines += ["", "[driver]", "pedal = 0.0", "brake = 0.3", ""]
    return "\n".join(lines)


def _strings(names: list[str]) -> str:
    return "[" + ", ".join(f'"{name}"' for name in names) + "]"
