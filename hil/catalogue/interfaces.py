"""docs/interfaces.md: what each interface of a maker covers, read from its rig file, database and interface file.

python -m torqueloop.hil.catalogue.interfaces docs/interface_drives.json > docs/interfaces.md
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from torqueloop.core.describe.classes import dataclass
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

These rig files have the buses of makers and are ready to run. The soft TCU sends the messages of the maker's control
unit with their checksums and counters, and receives the messages that this unit receives. The rig sends the messages of
all other nodes. Pressures, and speeds that have no signal on the maker's bus, are on a bus of the rig's own.
`torqueloop run RIG [--clock virtual]` drives through all gears.

The databases contain these messages of the databases of opendbc (MIT, `configs/LICENSE-OPENDBC.txt`). Those of
Mercedes-Benz and SAE J1939 are written from published facts. `python rt_tests/judges/can_facts.py` compares positions,
scalings, lengths and periods field by field with recordings of real cars, lists of makers and second databases
(`rt_tests/reference/can` has the facts with their sources). Recorded frames are decoded to the values of their sources.

All of this is public knowledge and does not come from the makers' own files, so a meaning may be wrong. A rule that is
not public has a dash in the table. Each table says how a message is known: recorded on a real bus, published by its
maker, given by two independent sources, given by one source, or assumed. `torqueloop bus scan --check` compares this
with a recording of your car ([check_interface.md](check_interface.md)).

[interface_file.md](interface_file.md) describes the keys of an interface file, and
[new_interface.md](new_interface.md) explains how to add a bus. To use a real control unit, remove `[ecu.tcu]` and
connect `[inputs]` to its messages ([connect_your_ecu.md](connect_your_ecu.md)).
"""


_DRIVEN = """## Through all gears

Each rig drives from standstill up to its top gear, and then coasts and brakes down to standstill (70 s). The gears are
those of the maker's own messages, decoded by cantools, without requests that are withdrawn within 0.3 s. Rejected
frames are those that the rig and the control unit refuse, on both buses.

- virtual: `rt_tests/judges/interface_drives.py`. Rig and control unit run in lockstep.
- real: `rt_tests/judges/interface_drives.py --clock real`. Control unit and vehicle are processes of their own, and the
  buses are UDP. The virtual machine with two cores had much other work (load 5 to 10), and its pauses of up to 0.7 s
  caused the missed ticks. A pause that is longer than the timeouts of a desk rig (0.3 s) leads to the safe state; these
  rigs were driven again.
- vcan: `scripts/vm_measure.py --only desk_vw_pq` (one rig; `interfaces` for all). SocketCAN runs on a PREEMPT_RT kernel
  ([vm.md](vm.md)). Time is counted instructions, so only the program itself can miss a tick.

"""


_REFUSED = """## What would a real unit refuse today?

This table follows from how each message is known. "Checksum not public" means that a real unit certainly refuses the
message, because the rig sends 0 instead of the checksum. "In doubt" means that its checksum, layout or period is
assumed. A unit that refuses messages sets fault codes and uses substitute values. A real bus carries more messages than
these, and a unit that does not receive one of them sets a fault code for it, too.
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
    yield f"The control unit takes {taken}; everything else comes from the rig's own bus.\n"
    yield ("| message | id | from | cycle [ms] | protection | how it is known | signals and their sources "
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
            cycle += ", while torque is requested"
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
