"""docs/interfaces.md: what each interface of a maker covers, read from its rig file, database and interface file.

python -m torqueloop.hil.catalogue.interfaces docs/interface_drives.json > docs/interfaces.md
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from torqueloop.cython_kernels.can.codec_spec import MessageSpec, counter_range
from torqueloop.hil.can.database import CanDatabase
from torqueloop.hil.can.known import WORDS, Known
from torqueloop.hil.can.load import read_database
from torqueloop.hil.common.locate import find, locate
from torqueloop.hil.ecu.interface_tables import InterfaceConfig, Sent, load_interface
from torqueloop.hil.rig.devices.device import BusPlan, RigPlan
from torqueloop.hil.rig.devices.engine_control import EngineControl
from torqueloop.hil.rig.resolve.plan import load_plan
from torqueloop.hil.rig.schema.rig_file import Output

#: rigs with a maker's bus beside their own, in the order of the page
RIGS = (
    "desk_bmw_e9x", "desk_bmw_f", "desk_vw_pq", "desk_audi_c6", "desk_vw_mqb", "desk_hyundai", "desk_mb_egs52",
    "desk_j1939", "desk_vw_mlb", "desk_ram_dt",
)  # fmt: skip
#: name of that bus
BUS = "car"

_HEAD = """# Interfaces of makers

Made by `python -m torqueloop.hil.catalogue.interfaces docs/interface_drives.json`; do not edit.

Rig files with the buses of makers, ready to run: the soft TCU sends what the maker's control unit sends, with its
checksums and counters, and takes from there what the maker's control unit takes; the other nodes are the rest of the
bus. Pressures, and the speeds that have no signal there, go over the rig's own bus. `torqueloop run RIG
[--clock virtual]` drives through all gears.

The databases begin with those of opendbc (MIT, `configs/LICENSE-OPENDBC.txt`), cut to these messages; those of
Mercedes-Benz and SAE J1939 are written from published facts. Places, scalings, lengths and periods are compared field
by field with recordings of real cars, makers' lists and second databases
(`python rt_tests/judges/can_facts.py`; facts with their sources: `rt_tests/reference/can`), and recorded frames are
decoded to the values of their sources. All of it is public knowledge from outside: meanings
may be wrong, and where a rule is not public the table says so with a dash. Each table says how a message is known:
recorded on a real bus, published by its maker, by two independent sources, by one, or assumed; `torqueloop bus scan
--check` compares that with a recording of your car
([check_interface.md](check_interface.md)). Keys of an interface file:
[interface_file.md](interface_file.md); a bus of your own: [new_interface.md](new_interface.md). With a real control
unit, take `[ecu.tcu]` out and wire `[inputs]` to what it sends ([connect_your_ecu.md](connect_your_ecu.md)).
"""


_DRIVEN = """## Through all gears

Each rig from a standstill up to its top gear, coasting and braking down to a standstill (70 s). Gears are those of the
maker's own messages, decoded by cantools, without wishes that are withdrawn within 0.3 s; rejected are frames by the
rig and by the control unit, on both buses.

- virtual: `rt_tests/judges/interface_drives.py`, rig and control unit in lockstep
- real: `rt_tests/judges/interface_drives.py --clock real`, control unit and vehicle in processes of
  their own, buses over UDP; on two cores of a virtual machine full of other work (load 5 to 10), whose stops of up to
  0.7 s are what was missed. Where such a stop outlasts the 0.3 s of a desk's timeouts the safe state comes;
  these rigs were driven again
- vcan: `scripts/vm_measure.py --only desk_vw_pq` (another one; `interfaces`: all), SocketCAN on a PREEMPT_RT kernel
  ([vm.md](vm.md)); time is counted instructions, so a missed tick would be the program's

"""


_REFUSED = """## What would a real unit refuse today?

Read from how each message is known. Refused for certain: the message has a checksum whose rule is not published, so
the rig sends 0 in its place. In doubt: its checksum, layout or period is assumed. A unit that refuses messages sets
fault codes and uses substitute values. A real bus carries more messages than these; a unit that misses one of them sets
a fault code for it, too.
"""


@dataclass(frozen=True)
class Row:
    """A message on the page."""

    message: str
    can_id: int
    sender: str
    cycle: str
    protection: str
    known: str
    signals: str
    constant: int


def page(drives: Mapping[str, Any]) -> str:
    """The whole page. drives: figures of rt_tests/judges/interface_drives.py, by clock and rig."""
    driven = [_DRIVEN.rstrip() + "\n", *driven_lines(drives), ""]
    sections = (line for rig in RIGS for line in _section(rig))
    return "\n".join([_HEAD, *_summary(), _REFUSED.rstrip() + "\n", *_refusals(), *driven, *sections])


def driven_lines(drives: Mapping[str, Any]) -> list[str]:
    """Figures of drives through all gears as a table: clock -> rig -> its figures."""
    lines = ["| rig | clock | gears up | gears down | ticks | missed | frames | rejected | safe state |",
             "|---|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for rig in RIGS:
        for clock, rows in drives.items():
            if rig in rows:
                r = rows[rig]
                up, down = ("-".join(map(str, r[key])) for key in ("up", "down"))
                rejected = r["rejected_rig"] + r["rejected_unit"]
                lines.append(f"| `{rig}` | {clock} | {up} | {down} | {r['ticks']} | {r['missed']} | {r['frames']} "
                             f"| {rejected} | {r['safe_state'] or '-'} |")  # fmt: skip
    return lines


def _summary() -> Iterator[str]:
    yield "| rig | network | gearbox | messages out / in | checksums | counters | signals moved | torque request |"
    yield "|---|---|---|---|---|---|---|---|"
    for name in RIGS:
        plan, bus, interface = _rig(name)
        table = rows(plan, bus, interface)
        own = [r for r in table if r.sender == "TCU"]
        crc = sum("checksum" in r.protection for r in table)
        counter = sum("counter" in r.protection for r in table)
        moved = len(interface.send) + sum(link.signal is not None for link in _outputs(plan, bus).values())
        engine = plan.device(EngineControl).given.engine_control
        limit = engine.limit.signal if engine is not None and engine.limit is not None else ""
        on_bus = plan.on_bus(plan.table.slot(limit)) if limit else None
        asked = f"`{limit}`" + ("" if on_bus is not None and on_bus[0] is bus else ", own bus")
        gearbox = plan.driveline.name.removeprefix("car_").removesuffix("_rig")
        yield (f"| [`{name}`](#{name}) | {interface.network} | {gearbox} | {len(own)} / {len(table) - len(own)} "
               f"| {crc} | {counter} | {moved} | {asked} |")  # fmt: skip
    yield ""


def _refusals() -> Iterator[str]:
    yield "| network | a real control unit, of what the rig sends | the car's other units, of what the soft TCU sends |"
    yield "|---|---|---|"
    for name in RIGS:
        plan, bus, interface = _rig(name)
        table = rows(plan, bus, interface)
        known = {r.message: interface.known.get(r.message, Known()) for r in table}
        own = {r.message for r in table if r.sender == "TCU"}
        yield (f"| {interface.network} | {refused({m: of for m, of in known.items() if m not in own})} "
               f"| {refused({m: of for m, of in known.items() if m in own})} |")  # fmt: skip
    yield ""


def refused(known: Mapping[str, Known]) -> str:
    """Which of these messages a receiver refuses, or may refuse, as far as is known."""
    certain = [name for name, of in known.items() if of.protection == "not_public"]
    parts = [f"{', '.join(certain)}: checksum not public"] if certain else []
    unsure: dict[str, list[str]] = {}
    for name, of in known.items():
        doubts = [what for what, how in (("checksum", of.protection), ("layout", of.layout), ("period", of.period))
                  if how in ("assumed", "contradicted")]  # fmt: skip
        if doubts and name not in certain:
            unsure.setdefault(" and ".join(doubts), []).append(name)
    parts += [f"in doubt {', '.join(names)}: {what} assumed" for what, names in unsure.items()]
    return "; ".join(parts) or "nothing known"


def _section(name: str) -> Iterator[str]:
    plan, bus, interface = _rig(name)
    yield f"## {name}\n"
    yield f"{interface.network}. Database `{bus.database.path.name}`, interface `{interface.name}`.\n"
    taken = ", ".join(f"{quantity} from `{r.signal}`" for quantity, r in interface.receive.items())
    yield f"The control unit takes {taken}; everything else from the rig's own bus.\n"
    yield ("| message | id | from | cycle [ms] | protection | how it is known | signals and where they come from "
           "| constant |")  # fmt: skip
    yield "|---|---|---|---|---|---|---|---|"
    for r in rows(plan, bus, interface):
        yield (f"| {r.message} | 0x{r.can_id:X} | {r.sender} | {r.cycle} | {r.protection or '-'} | {r.known} "
               f"| {r.signals or '-'} | {r.constant} |")  # fmt: skip
    yield ""


def rows(plan: RigPlan, bus: BusPlan, interface: InterfaceConfig) -> list[Row]:
    """The messages of the bus: those of the control unit first."""
    raw = {m.name: m for m in read_database(bus.database.path).messages}
    unit = CanDatabase.load(bus.database.path, "TCU", timeouts_s={"*": 0.0})
    outputs = _outputs(plan, bus)
    made = []
    for message in (*unit.tx_messages, *bus.database.tx_messages):
        own = message in unit.tx_messages
        sender = "TCU" if own else raw[message.name].senders[0]
        moved: dict[str, str] = {}
        for signal in message.signals:
            full = f"{message.name}.{signal.name}"
            if own and full in interface.send:
                moved[signal.name] = _sent(interface.send[full])
            elif full in outputs and not own:
                moved[signal.name] = _wired(outputs[full])
        cycle = f"{message.cycle_ns / 1e6:g}" if message.cycle_ns else "event"
        if message.name in interface.only_active:
            cycle += ", while torque is asked for"
        signals = "<br>".join(f"{s}: {of}" for s, of in moved.items())
        known = _known(interface.known[message.name]) if message.name in interface.known else "nothing is said"
        made.append(Row(message.name, message.can_id, sender, cycle, protection(message), known, signals,
                        len(message.signals) - len(moved)))  # fmt: skip
    return made


def protection(message: MessageSpec) -> str:
    """Checksum and values of the counter."""
    parts = [f"checksum {message.e2e}"] if message.e2e != "NONE" else []
    if message.counter is not None:
        low, high = counter_range(message, message.counter)
        skips = f" without {', '.join(map(str, message.counter_skips))}" if message.counter_skips else ""
        parts.append(f"counter {low}..{high}{skips}")
    return ", ".join(parts)


def _known(known: Known) -> str:
    """Layout, period, counter and checksum in a cell; equal ones once."""
    said: dict[str, list[str]] = {}
    for what, of in (("layout", known.layout), ("period", known.period), ("protection", known.protection)):
        if of != "none":
            said.setdefault(WORDS[of], []).append(what)
    for name, of in known.signals.items():
        said.setdefault(WORDS[of], []).append(f"`{name}`")
    return "<br>".join(f"{', '.join(what)}: {words}" for words, what in said.items())


def _sent(sent: Sent) -> str:
    return f"{sent.value:g}" if sent.of is None else f"`{sent.of}`"


def _wired(link: Output) -> str:
    return f"`{link.signal}`" if link.signal is not None else f"{link.value}"


def _outputs(plan: RigPlan, bus: BusPlan) -> Mapping[str, Output]:
    names = {s.full_name for s in bus.database.signals if not s.receive}
    return {name: link for name, link in plan.config.outputs.items() if name in names}


@cache
def _rig(name: str) -> tuple[RigPlan, BusPlan, InterfaceConfig]:
    path = locate(name, "rigs")
    plan = load_plan(path)
    interface = load_interface(find(path, str(plan.config.ecu["tcu"].options["interface"]), "interfaces"))
    return plan, plan.bus(BUS), interface


if __name__ == "__main__":
    print(page(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))), end="")
