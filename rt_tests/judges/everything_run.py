"""Judge of the long run with everything on, which scripts/vm_measure.py --only everything makes in the machine.

    python rt_tests/judges/everything_run.py [build/vm-results/everything]

Prints missed ticks, overruns, the memory of each process and its growth, the lost telemetry, and whether each of the
three recordings has every frame that candump has seen on the two buses, byte for byte, in order. A run that was killed
is judged up to its last minute, and each recording up to its own last frame. Growth is judged if the run
has at least twelve minutes. Status 1 if something is missing.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import can
import numpy as np

from torqueloop.hil.record.bus_log import described_buses, messages, read_bus

#: frame of a bus: number of the bus, identifier, 29 bits
Key = tuple[int, int, bool]
#: times [s since 1970] and data of the frames of one key
Frames = dict[Key, tuple[list[float], list[bytes]]]
#: counts of what is read all the time (rt_tests/vm/stages/everything.py)
READ = ("telemetry", "page_values", "page_stats", "page_trace")
#: stamps of the rig and of the kernel differ less than this; no message of the rig has a shorter period [s]
TOLERANCE_S = 2e-3
#: the memory of a process is flat if it grows less [kB per minute], from this minute on: caches are full then
GROWTH_KB, FROM_MINUTE = 64.0, 2
#: minutes that a slope needs: a single block that Python takes from the kernel has 1 MB
SLOPE_MINUTES = 10


def by_key(found: Iterable[can.Message], channels: dict[Any, int]) -> Frames:
    """Frames of each bus and identifier in their order. channels: name of a channel in the log -> number of its bus."""
    frames: Frames = defaultdict(lambda: ([], []))
    for m in found:
        t, data = frames[channels[m.channel], m.arbitration_id, m.is_extended_id]
        t.append(m.timestamp)
        data.append(bytes(m.data))
    return frames


def listened(log: Path) -> tuple[Frames, int]:
    """What candump has seen, and how often it says that frames were dropped. Its last line may be cut off."""
    lines = log.read_text().splitlines(keepends=True)
    whole = io.StringIO("".join(line for line in lines if line.startswith("(") and line.endswith("\n")))
    return by_key(can.CanutilsLogReader(whole), {"vcan0": 0, "vcan1": 1}), sum("DROPCOUNT" in line for line in lines)


def compared(seen: Frames, kept: Frames) -> dict[str, int]:
    """Frames that were seen while a recording was made, those of them that it has, and those that it lacks."""
    # candump writes blocks: what a run that was killed has recorded after the last one, nobody else has seen
    limit = max(t[-1] for t, _ in seen.values()) - TOLERANCE_S
    begin = min(t[0] for t, _ in kept.values())
    end = min(limit, max(t[-1] for t, _ in kept.values()))
    counts = {"kept": 0, "missing": 0, "changed": 0, "unseen": 0}
    for key in seen.keys() | kept.keys():
        times, data = seen.get(key, ([], []))
        at, own = kept.get(key, ([], []))
        own = own[: int(np.searchsorted(at, limit))]
        inside = (np.array(times) > begin + TOLERANCE_S) & (np.array(times) < end - TOLERANCE_S)
        first = int(np.searchsorted(times, at[0] - TOLERANCE_S)) if own else len(times)
        theirs = data[first : first + len(own)]
        same = sum(a == b for a, b in zip(own, theirs, strict=False))
        counts["kept"] += same
        counts["changed"] += len(theirs) - same
        counts["unseen"] += len(own) - len(theirs)
        # what was seen before the first frame that was kept, and after the last one
        counts["missing"] += int(inside[:first].sum() + inside[first + len(own) :].sum())
    return counts


def recordings(run: Path, seen: Frames) -> dict[str, dict[str, int]]:
    """Each form of the recording beside what was seen."""
    frames, header, damage = read_bus(run)
    names, epoch_ns = described_buses(header, str(run))
    numbers = {name: k for k, name in enumerate(names)}
    channels = dict(enumerate(range(len(names))))
    found = {
        "run folder": by_key(messages(frames, epoch_ns), channels),
        "bus.blf": by_key(can.BLFReader(run / "bus.blf"), channels),
        "bus.log": by_key(can.CanutilsLogReader(run / "bus.log"), numbers),
    }
    return {name: {**compared(seen, kept), "damaged": len(damage)} for name, kept in found.items()}


def off(rows: list[dict[str, Any]]) -> list[str]:
    """What was not on: a process that has ended, a client that has read nothing, telemetry that did not arrive."""
    last = rows[-1]
    gone = {name for row in rows for name in row["processes"]} - last["processes"].keys()
    found = [f"{name} has ended" for name in sorted(gone)]
    heard = last["counts"]
    found += [f"{name}: nothing was read" for name in READ if not heard[name]]
    if heard["telemetry_missing"] > last["telemetry"]["left_out"]:
        found.append(f"telemetry: {heard['telemetry_missing']} samples did not arrive")
    return found


def growth(rows: list[dict[str, Any]]) -> dict[str, tuple[float, float, float]]:
    """Process -> memory at its first minute and at the last one [MB], growth by least squares [kB per minute]."""
    rows = rows[FROM_MINUTE:] if len(rows) > FROM_MINUTE + 1 else rows
    found = {}
    for name in rows[-1]["processes"]:
        points = [(row["guest_s"] / 60.0, row["processes"][name]["rss_kB"]) for row in rows if name in row["processes"]]
        t, kB = np.array(points).T
        slope = float(np.polyfit(t, kB, 1)[0]) if len(points) > 1 else 0.0
        found[name] = (kB[0] / 1e3, kB[-1] / 1e3, slope)
    return found


def load(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Share of the processor of each process, and of all together."""
    first, last = rows[0], rows[-1]
    lasted = max(last["guest_s"] - first["guest_s"], 1e-9)
    ran = {n: p["ran_s"] - first["processes"].get(n, {"ran_s": 0.0})["ran_s"] for n, p in last["processes"].items()}
    return {n: s / lasted for n, s in ran.items()} | {"all": 1.0 - (last["idle_s"] - first["idle_s"]) / lasted}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(__file__).parents[2] / "build" / "vm-results" / "everything"
    parser.add_argument("folder", type=Path, nargs="?", default=default)
    folder = parser.parse_args().folder
    rows = [json.loads(line) for line in (folder / "minutes.jsonl").read_text().splitlines()]
    if "ticks" not in rows[-1]:
        raise SystemExit("the run ended within its first minute")
    last, wrong = rows[-1], []
    print(f"{last['ticks']} ticks, {last['missed']} missed, {last['overruns']} overruns, smallest margin "
          f"{last['margin_min_us']:.0f} us, state {last['state']}")  # fmt: skip
    wrong += ["ticks were missed"] if last["missed"] or last["overruns"] else []
    print(f"records that the recorder lost: {last['recording']}; samples that telemetry left out: {last['telemetry']}; "
          f"counts of the listeners: {last['counts']}")  # fmt: skip
    wrong += ["records were lost"] if any(last["recording"].values()) else []
    wrong += off(rows)
    shares = load(rows)
    for name, (before, now, slope) in growth(rows).items():
        print(f"{name:32} {before:7.1f} -> {now:7.1f} MB, {slope:+7.1f} kB/min, "
              f"{100 * shares[name]:5.1f} % of the processor")  # fmt: skip
        grows = len(rows) > FROM_MINUTE + SLOPE_MINUTES and slope > GROWTH_KB
        wrong += [f"{name} grows by {slope:.0f} kB per minute"] if grows else []
    print(f"{'all together':32} {100 * shares['all']:.0f} % of the processor")
    seen, lost = listened(folder / "candump.log")
    print(f"candump: {sum(len(t) for t, _ in seen.values())} frames of {len(seen)} messages, {lost} reports of loss")
    wrong += ["candump has lost frames"] if lost else []
    for name, counts in recordings(folder / "out", seen).items():
        print(f"{name:12} " + ", ".join(f"{n} {what}" for what, n in counts.items()))
        wrong += [f"{name} lacks frames"] if any(n for what, n in counts.items() if what != "kept") else []
    for line in wrong:
        print(f"WRONG: {line}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
