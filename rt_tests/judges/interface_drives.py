"""Every interface of a maker through all gears up and down: gears, missed ticks, rejected frames, as a table.

    python rt_tests/judges/interface_drives.py [RIG ...] [--clock virtual|real] [--out docs/interface_drives.json]

Each rig drives what its file says: up to the top gear, coasting and braking down to a standstill. On the real clock it
takes 70 s, with the control unit in a process of its own on UDP buses; missed ticks are told, not judged. Gears
are those of the maker's own messages, decoded by cantools. --out adds the figures of this clock to a file, from which
docs/interfaces.md is made. In the virtual machine on vcan: scripts/vm_measure.py --only interfaces.
Status 1 when a gear is left out, a frame is rejected, or the safe state comes.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from itertools import groupby
from pathlib import Path
from typing import Any

import cantools

import torqueloop as tl
from torqueloop.hil.catalogue.interfaces import BUS, RIGS, driven_lines
from torqueloop.hil.common.locate import locate
from torqueloop.hil.record.bus_log import read_bus
from torqueloop.hil.results.run import RunStats
from torqueloop.hil.rig.resolve.plan import load_plan

CONFIGS = Path(tl.__file__).parent / "configs"
#: rig -> the signal that says the gear, highest gear, its number before that of first gear. BMW's F series has
#: no public signal of the gear: there the rig's own bus says it
GEARS = {
    "desk_bmw_e9x": ("TransmissionData.GearTar", 6, 4),
    "desk_bmw_f": ("TCU_Status.gear_actual", 8, 0),
    "desk_vw_pq": ("Getriebe_1.GE1_Zielgang", 4, 0),
    "desk_audi_c6": ("Getriebe_1.GE1_Zielgang", 6, 0),
    "desk_vw_mqb": ("Getriebe_11.GE_Zielgang", 6, 0),
    "desk_hyundai": ("TCU12.CUR_GR", 8, 0),
    "desk_mb_egs52": ("GS_218.gear_actual", 5, 0),
    "desk_j1939": ("ETC2.CurrentGear", 8, 0),
    "desk_vw_mlb": ("Getriebe_03.GE_Zielgang", 8, 0),
    "desk_ram_dt": ("TCM_1.ACTUAL_GEAR", 8, 0),
}

#: rig -> number in that signal -> gear, where no one offset does it; 0: no gear forwards
NUMBERS = {"desk_vw_mlb": {8: 0, 11: 8}, "desk_audi_c6": {7: 0, 8: 6}}
#: some makers' messages say the gear that is wanted: a wish withdrawn while a clutch fills is no gear [s]
SHORT_S = 0.3


def said_gears(run_dir: Path, rig: str) -> list[int]:
    """Gears one after the other as the maker's message says, by cantools; without those shorter than SHORT_S."""
    name, _, signal = GEARS[rig][0].partition(".")
    plan = load_plan(locate(rig, "rigs"))
    order = sorted(plan.buses, key=lambda bus: bus.name != BUS)
    bus = next(bus for bus in order if name in (m.name for m in bus.database.messages))
    number = [b.name for b in plan.buses].index(bus.name)
    message = cantools.database.load_file(bus.database.path).get_message_by_name(name)
    frames = read_bus(run_dir)[0]
    wanted = frames[(frames["bus"] == number) & (frames["id"] & 0x1FFFFFFF == message.frame_id)]
    said = (message.decode(f["data"].tobytes()[: f["dlc"]], decode_choices=False)[signal] for f in wanted)
    gears = [NUMBERS.get(rig, {}).get(int(number), int(number) - GEARS[rig][2]) for number in said]
    changes = [k for k in range(len(gears)) if k == 0 or gears[k] != gears[k - 1]]
    ends = [*changes[1:], len(gears) - 1]
    long = [
        gears[a] for a, b in zip(changes, ends, strict=True) if wanted["t_ns"][b] - wanted["t_ns"][a] > 1e9 * SHORT_S
    ]
    return [gear for gear, _ in groupby(g for g in long if 0 < g <= GEARS[rig][1])]


def driven(run_dir: Path, rig: str, stats: RunStats, told: dict[str, Any]) -> dict[str, Any]:
    """Figures of one run. told: what its control unit said of itself."""
    top = GEARS[rig][1]
    said = said_gears(run_dir, rig)
    at = said.index(top) if top in said else len(said)
    return {
        "up": said[: at + 1],
        "down": said[at:],
        "top": top,
        "ticks": stats.clock.ticks,
        "missed": stats.clock.missed,
        "frames": sum(bus.rx_frames + bus.tx_frames for bus in stats.buses.values()),
        "rejected_rig": sum(bus.rx_bad for bus in stats.buses.values()),
        "rejected_unit": sum(told["refused"].values()),
        "modes": [m["mode"] for m in told["modes"]],
        "safe_state": stats.safe_state.cause if stats.safe_state.latched else "",
    }


def passed(row: dict[str, Any]) -> bool:
    """All gears both ways, nothing rejected."""
    up, down = row["up"], row["down"]
    through = up == list(range(1, row["top"] + 1)) and down == sorted(down, reverse=True) and down[-1:] == [1]
    return through and not row["rejected_rig"] and not row["rejected_unit"] and not row["safe_state"]


def main() -> int:
    """See the head of this file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rigs", nargs="*", metavar="RIG", help=f"default: {' '.join(RIGS)}")
    parser.add_argument("--clock", choices=("virtual", "real"), default="virtual")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rows = {}
    for rig in given.rigs or RIGS:
        with tempfile.TemporaryDirectory() as folder:
            run = tl.run(rig, clock=given.clock, out=Path(folder) / "run", html=False)
            rows[rig] = driven(run.path, rig, run.stats, run.stats.participants["tcu"].reported)
        print("\n".join(driven_lines({given.clock: {rig: rows[rig]}})[2 if len(rows) > 1 else 0 :]), flush=True)
    if given.out is not None:
        found = json.loads(given.out.read_text()) if given.out.exists() else {}
        found.setdefault(given.clock, {}).update(rows)
        given.out.write_text(json.dumps(found, indent=1) + "\n")
    return 0 if all(map(passed, rows.values())) else 1


if __name__ == "__main__":
    sys.exit(main())
