"""A rig file for a control unit that is known by its CAN database: every binding that names and units give, and a
mark where they give none.

What is found: signals that the control unit's node receives and that mean a quantity of the car (WANTED), lever and
gear by the words of their value tables, pressures or currents of shift elements that it sends, its torque request.
Nothing is guessed beyond name, unit and words: what has no source is written as a comment with the value it gets
instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from pathlib import Path
from typing import Any

from torqueloop.core.compile.compiler import CompiledModel
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError, UnknownNameError, did_you_mean
from torqueloop.hil.can.load import Loader, read_database
from torqueloop.hil.can.traffic import Traffic
from torqueloop.hil.can.units import SiUnit, si_unit
from torqueloop.hil.common.signal_words import gear_words, is_wanted, lever_words, plain_words
from torqueloop.hil.new.hydraulic_file import Piston, without_lag

#: cycle time of a message that the database gives none [s]
ASSUMED_S = 0.01
#: mark of what a reader has to look at
MARK = "# ?"


INTERVENTION = "engine_control.intervention"


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
        switch = unit.symbol == "1" and unit.factor != Fraction(1, 100)
        if switch != (self.signal == INTERVENTION):
            return False
        text = plain_words(name)
        return unit.symbol == self.unit and bool(re.search(self.words, text)) and not re.search(self.not_words, text)


_OTHER = (r"target|tgt|idl|soll|setpoint|desired|wunsch|request|command|limit|max|min|gradient|leerlauf|valid|fehler|"
          r"error")  # fmt: skip
#: in the order in which they are tried
WANTED = (
    Quantity("engine.w", "rad/s", r"\bengine\w*\b.*\bspeed|\bspeed\b.*\bengine|motordrehzahl|\bnmot|^speed$", _OTHER),
    Quantity("turbine.w", "rad/s", r"turbine|\binput\b", _OTHER),
    Quantity("out.w", "rad/s", r"\boutput\b|abtrieb|kardan", _OTHER),
    Quantity("car.v", "m/s", r"vehicle|\bv\b|speed|geschw|tacho|^vs$", _OTHER),
    Quantity("driver.pedal", "1", r"pedal ?(pos|wert|value)?|accel\w*|gas|fahrpedal|throttle|drosselkl|\bpv\b",
             _OTHER + r"|brake|brems|clutch|kuppl"),
    Quantity("driver.brake", "1", r"\bbrake ?(pedal)?\b|brems", _OTHER + r"|temp"),
    Quantity("engine_control.tau_driver", "Nm", r"driver|wunschmoment|demand", r"request|limit|max|min|valid|error"),
    Quantity("engine.tau", "Nm", r"\bengine\b.*torque|motormoment|torque\b.*\bengine|tau engine|istmoment|moment ist|"
             r"indicated", _OTHER),
    Quantity("engine_control.intervention", "1", r"interv|eingriff|\back", r"error|fehler|valid"),
)  # fmt: skip
#: torque that the control unit limits the engine to; a switch whose name has a word of it says that it does
REQUEST = r"limit|request|reduction|interv|eingriff"


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
    #: lever or gear that is sent by words: signal -> (signal of the driver, word -> number in the unit of the database)
    words: dict[str, tuple[str, dict[str, float]]] = field(default_factory=dict)
    #: of those, gears whose value table has no word for no request
    no_none: list[str] = field(default_factory=list)
    #: pressures and currents of the control unit that are not bound to an element
    no_element: list[str] = field(default_factory=list)
    #: keys of [monitors] and [engine_control] -> signal of the control unit
    monitors: dict[str, str] = field(default_factory=dict)
    engine: dict[str, str] = field(default_factory=dict)
    #: element -> signal with the current of its pressure solenoid
    currents: dict[str, str] = field(default_factory=dict)
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
    received = [m for m in raw.messages if m.name in made.receive]
    _bind_request(made, received)
    _bind_outputs(made, [m for m in to_unit if m.name in usable], model)
    _bind_inputs(made, received, model)
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


def _bind_request(made: Draft, messages: list[Any]) -> None:
    """The torque request: a torque, and a switch of the same message."""
    for message in messages:
        torques = [s for s in message.signals if (u := si_unit(s.unit)) is not None and u.symbol == "Nm"]
        limit = next((s for s in torques if re.search(REQUEST, plain_words(s.name))), None)
        if limit is None:
            continue
        words = set(plain_words(limit.name).split())
        switches = {s.name: len(words & set(plain_words(s.name).split())) for s in message.signals if s.length == 1}
        active = max(switches, key=switches.__getitem__, default="")
        if active and switches[active] and not made.engine:
            made.engine = {"limit": f"{message.name}.{limit.name}", "active": f"{message.name}.{active}"}


def _bind_outputs(made: Draft, messages: list[Any], model: CompiledModel) -> None:
    known = {*model.output_names, "driver.pedal", "driver.brake"}
    if made.engine:
        known |= {"engine_control.tau_driver", INTERVENTION}
    for message in messages:
        for signal in message.signals:
            unit = si_unit(signal.unit)
            name = f"{message.name}.{signal.name}"
            found = next(
                (q.signal for q in WANTED
                 if unit is not None and q.signal in known and q.is_meant(signal.name, unit)),
                None,
            )  # fmt: skip
            lever, gear = lever_words(signal.choices or {}), gear_words(signal.choices or {})
            if found is not None:
                made.outputs[name] = found
            elif lever or (gear and is_wanted(signal.name)):
                words = lever or _with_none(signal, gear)
                values = {word: raw * signal.scale + signal.offset for word, raw in words.items()}
                made.words[name] = ("driver.lever" if lever else "driver.gear", values)
                if not lever and "N" not in gear:
                    made.no_none.append(name)
            else:
                made.constant.append(f"{name} [{signal.unit or '-'}]")


def _with_none(signal: Any, gear: dict[str, int]) -> dict[str, int]:
    """The words of a gear with a number for no request, N: one that no word has, if the table has none for it."""
    free = (raw for raw in (0, 2**signal.length - 1) if raw not in signal.choices)
    return {"N": gear.get("N", next(free, 0)), **gear}


def _bind_inputs(made: Draft, messages: list[Any], model: CompiledModel) -> None:
    elements = [n.removesuffix(".p") for n in model.input_names if n.endswith(".p")]
    used = {name for table in (made.engine, made.monitors) for name in table.values()}
    for message in messages:
        for signal in message.signals:
            name, unit = f"{message.name}.{signal.name}", si_unit(signal.unit)
            if gear_words(signal.choices or {}):
                if made.monitors.setdefault("asked" if is_wanted(signal.name) else "reported", name) == name:
                    used.add(name)
            if unit is None or unit.symbol not in ("Pa", "A"):
                continue
            text = plain_words(signal.name)
            for element in elements:
                word = "lu|lock ?up|wk|tcc" if element == "lockup" else re.escape(element.lower())
                if re.search(rf"\b({word})\b", text):
                    bound, key = (made.inputs, f"{element}.p") if unit.symbol == "Pa" else (made.currents, element)
                    if bound.setdefault(key, name) == name:
                        used.add(name)
            if name not in used:
                made.no_element.append(name)
    made.no_input = [f"{e}.p" for e in elements if f"{e}.p" not in made.inputs and e not in made.currents]
    made.unused = [f"{name} [{s.unit or '-'}]" for m in messages for s in m.signals
                   if (name := f"{m.name}.{s.name}") not in used]  # fmt: skip


@dataclass(frozen=True)
class UnitKind:
    """How the control unit is there."""

    #: hardware, library, zmq
    kind: str = "hardware"
    #: its file as the rig names it; "": there is none
    start: str = ""
    #: where it is on a real bus
    interface: str = "socketcan"
    channel: str = "can0"

    @property
    def pins(self) -> bool:
        """It can give numbers without a bus between."""
        return self.kind != "hardware"


def drive_pins(made: Draft, unit: UnitKind, found: Sequence[Piston]) -> dict[str, str]:
    """Pins of a unit that sends neither pressures nor currents, if it can have some: one current for each element."""
    if made.currents or made.inputs or made.no_element or not unit.pins:
        return {}
    made.currents = {p.component: f"unit.i_{p.name}" for p in found}
    made.no_input = [key for key in made.no_input if key.removesuffix(".p") not in made.currents]
    return {f"i_{p.name}": "A" for p in found}


def rig_from_database(name: str, powertrain: str, vehicle: str, database: str, made: Draft, model: CompiledModel,
                      unit: UnitKind | None = None, found: Sequence[Piston] = (), hydraulics: str = "",
                      engine_csv: str = "", pins: Mapping[str, str] | None = None) -> str:  # fmt: skip
    """The rig file, commented; MARK stands where something is to be looked at. found, hydraulics: elements and file of
    the hydraulic unit of currents. pins: actuators of the unit."""
    unit = unit or UnitKind()
    pins = pins or {}
    solenoids = [p for p in found if p.component in made.currents]
    requests = bool(made.engine and engine_csv and "engine.pedal" in model.input_names)
    lines = [
        f"# {name}: a rig for {made.node} of {made.database}. Written by `torqueloop new rig --dbc`.",
        f"# Bound by names, units and words: {len(made.outputs) + len(made.words)} signals sent, "
        f"{len(made.inputs) + len(made.currents)} received. Lines with '{MARK}'",
        "# are to be looked at; `torqueloop check` says what is wrong, `torqueloop bus scan` what is on the bus.",
        "# docs/connect_your_ecu.md", "",
        'kind = "rig"',
        "[rig]", f'name = "{name}"', "duration_s = 60.0", "", "[plant]", f'powertrain = "{powertrain}"', "",
    ]  # fmt: skip
    if solenoids:
        lines += ["# the hydraulic unit brings the dynamics of the pressures: those of the gearbox file are taken away",
                  "[plant.set]", *(f'"{k}" = {_value(v)}' for k, v in without_lag(solenoids).items()), ""]  # fmt: skip
    lines += ["[bus.powertrain]"]
    if unit.kind == "hardware":
        lines += [f'interface = "{unit.interface}"', f'channel = "{unit.channel}"']
    lines += [
        f'database = "{database}"', f'node = "{made.nodes[0]}"', f"nodes = {_strings(made.nodes[1:])}",
        f"send = {_strings(made.send)}", f"receive = {_strings(made.receive)}", "restbus = true",
    ]  # fmt: skip
    if not made.send:
        lines.append(f"{MARK} the database does not list {made.node} as a receiver: name in `send` what it needs")
    if made.uncertain:
        cycles = ", ".join(f"{m} = {ASSUMED_S}" for m in made.uncertain)
        lines += [f"{MARK} the database has no cycle time of these: {1e3 * ASSUMED_S:g} ms assumed",
                  f"cycle_s = {{ {cycles} }}"]  # fmt: skip
    lines += [f"{MARK} left out: {name}: {why}" for name, why in made.skipped.items()]
    lines += ["", "[ecu.unit]", f'kind = "{unit.kind}"', f'node = "{made.node}"']
    if unit.start:
        lines.append(f'start = "{unit.start}"')
    if pins:
        lines += [f"{MARK} it sends no pressures and no currents: one pin for each element",
                  f"actuators = {{ {', '.join(f'{k} = {_value(v)}' for k, v in pins.items())} }}"]  # fmt: skip
    if unit.kind != "hardware":
        lines += ["", "[ecu.unit.options]", "period_s = 5e-3"]
    if unit.kind == "zmq":
        lines.append('endpoint = "tcp://127.0.0.1:43190"')
    lines += ["", "[vehicle]", f'start = "{vehicle}"', ""]
    if requests:
        lines += ["[engine_control]", f'engine_csv = "{engine_csv}"', *(f'{k} = "{v}"' for k, v in made.engine.items()),
                  ""]  # fmt: skip
    if solenoids:
        lines += ["[hydraulics]", f'file = "{hydraulics}"', 'speed = "engine.w"', "", "[hydraulics.solenoids]",
                  *(f'{p.solenoid} = "{made.currents[p.component]}"' for p in solenoids), ""]  # fmt: skip
    lines += ["# model input = signal", "[inputs]"]
    lines += [f'"{key}" = "{signal}"' for key, signal in made.inputs.items()]
    lines += [f'"{p.component}.p" = "hydraulics.{p.name}.p"' for p in solenoids]
    lines += [f'"{key}" = 0.0    {MARK} {made.node} sends no pressure of this name' for key in made.no_input]
    if made.no_input and made.no_element:
        lines.append(f"{MARK} pressures and currents that are bound to no element: "
                     + ", ".join(made.no_element))  # fmt: skip
    lines += [f'"{key}" = "{source}"' for key, source in (
        ("engine.pedal", "engine_control.pedal" if requests else "driver.pedal"), ("road.F", "vehicle.F"),
        ("road.F_hold", "vehicle.F_hold"),
    ) if key in model.input_names]  # fmt: skip
    if made.unused:
        lines += [f"{MARK} sent by {made.node} and not used:", *(f"#   {signal}" for signal in made.unused)]
    lines += ["", "# signal to send = signal of the model or driver; all others take the database's start value",
              "[outputs]"]  # fmt: skip
    lines += [f'"{key}" = "{signal}"' for key, signal in made.outputs.items()
              if requests or not signal.startswith("engine_control.")]  # fmt: skip
    for key, (signal, words) in made.words.items():
        table = ", ".join(f'"{word}" = {raw}' for word, raw in words.items())
        lines.append(f'"{key}" = {{ signal = "{signal}", words = {{ {table} }} }}')
        if key in made.no_none:
            lines.append(f"{MARK} the value table has no word for no request: N sends {words['N']}")
    if made.constant:
        lines += [f"{MARK} constant at its start value:", *(f"#   {signal}" for signal in made.constant)]
    if made.monitors:
        lines += ["", "[monitors]", *(f'{key} = "{signal}"' for key, signal in sorted(made.monitors.items()))]
    lines += ["", *_driver(made)]
    return "\n".join(lines) + "\n"


def _driver(made: Draft) -> list[str]:
    """A first drive: brake off in D and 40 % of the pedal; at standstill where no lever is reported. It begins in P, so
    that what holds the park lock moves."""
    sources = {*made.outputs.values(), *(signal for signal, _ in made.words.values())}
    if "driver.lever" not in sources:
        return ["[driver]", "pedal = 0.0", "brake = 0.3"]
    lines = ["[driver]", "pedal = [[0.0, 0.0], [3.0, 0.0], [4.0, 0.4]]", "brake = [[0.0, 0.3], [2.0, 0.3], [2.5, 0.0]]",
             'lever = [[0.0, "P"], [1.0, "D"]]']  # fmt: skip
    if "driver.gear" in sources:
        lines.append('gear = "N"    # a gear that the driver asks for: [[0.0, "N"], [20.0, "3"]]; N: none')
    return lines


def _value(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def _strings(names: list[str]) -> str:
    return "[" + ", ".join(f'"{name}"' for name in names) + "]"
