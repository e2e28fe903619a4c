"""Buses at 100 % load by computed frame times: nothing lost, counters continuous, phases even.

    python rt_tests/judges/bus_load.py [--minutes 10] [--forms blf asc mf4 log]

One rig with three buses, 500 kbit/s, 1 Mbit/s, CAN FD 500 kbit/s with 2 Mbit/s for data; as many protected messages
(SAE J1850 and counter) of 10 ms as their longest frames leave time for. What is sent is decoded by a receiver of its
own and its counters are followed here by hand; the histogram shows how many frames a tick of 1 ms sends. What the
recorder has counted into the files, and what is read back from each of them, is as many as were sent, bus by bus.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import can

from torqueloop.cython_kernels.can.codec import RxState
from torqueloop.hil.can.database import CanDatabase, E2ESettings
from torqueloop.hil.record.bus_log import bus_header, count_frames, read_bus
from torqueloop.hil.record.bus_stream import BUS_FORMS, BusStreamed
from torqueloop.hil.record.recorder import Recorder
from torqueloop.hil.rig.assemble.parts import build
from torqueloop.hil.rig.resolve.plan import load_plan

ROOT = Path(__file__).resolve().parents[2]
CYCLE_S, TICK_NS = 0.01, 1_000_000
#: name -> bytes, bit rate, bit rate of the data (0: classic)
BUSES = {"slow": (8, 500_000, 0), "fast": (8, 1_000_000, 0), "fd": (64, 500_000, 2_000_000)}


def frame_s(size: int, rate: int, data_rate: int) -> float:
    """Longest time of a frame with an 11-bit identifier and what follows it, all stuff bits set (ISO 11898-1)."""
    if not data_rate:
        # 34 bits and the data can be stuffed, one in four; 13 cannot (delimiters, acknowledge, end, intermission)
        stuffed = 34 + 8 * size
        return (stuffed + (stuffed - 1) // 4 + 13) / rate
    head = 17  # start, identifier, RRS, IDE, FDF, reserved, BRS
    data = 1 + 4 + 8 * size  # ESI, length, data
    crc = 21 + 4 + 6  # CRC, stuff count, fixed stuff bits
    stuff = (head + data - 1) // 4
    tail = 13  # delimiters, acknowledge, end, intermission
    return (head + 4 + tail) / rate + (data + stuff - 4 + crc) / data_rate


def database(folder: Path, name: str, n: int, size: int, fd: bool) -> Path:
    """n messages of one node."""
    lines = ['VERSION ""', "BU_: A B"]
    for i in range(n):
        lines.append(f'BO_ {256 + i} M{i}: {size} A\n SG_ crc : 0|8@1+ (1,0) [0|255] "" B')
        lines.append(' SG_ alive : 8|4@1+ (1,0) [0|15] "" B')
        lines += [f' SG_ v{j} : {16 + 16 * j}|16@1+ (1,0) [0|65535] "" B' for j in range((size - 2) // 2)]
    if fd:
        lines.append('BA_DEF_ BO_ "VFrameFormat" ENUM "StandardCAN","ExtendedCAN","r","J1939PG"' + ',"r"' * 10)
        lines[-1] += ',"StandardCAN_FD","ExtendedCAN_FD";'
        lines.append('BA_DEF_DEF_ "VFrameFormat" "StandardCAN_FD";')
    path = folder / f"{name}.dbc"
    path.write_text("\n".join(lines) + "\n")
    return path


def main() -> int:
    """Status 1 when a frame was lost, refused or out of order, or the phases are not even."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0, help="of virtual time")
    parser.add_argument("--forms", nargs="*", default=[], choices=BUS_FORMS, help="written beside, and read back")
    options = parser.parse_args()
    minutes = options.minutes
    ticks = round(minutes * 60_000)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = f'[rig]\nname = "load"\n[plant]\npowertrain = "{ROOT / "configs" / "examples" / "two_blocks.toml"}"\n'
        text += '[record]\nsignals = ["rig.time"]\ninputs = false\n'
        text += '[inputs]\n"u1.f" = { value = 0.0 }\n"u2.f" = { value = 0.0 }\n'
        receivers, counts = {}, {}
        for k, (bus, (size, rate, data_rate)) in enumerate(BUSES.items()):
            long_s = frame_s(size, rate, data_rate)
            n = counts[bus] = int(CYCLE_S / long_s + 1e-9)
            path = database(folder, bus, n, size, bool(data_rate))
            cycles = ", ".join(f"M{i} = {CYCLE_S}" for i in range(n))
            text += f'[bus.{bus}]\ndatabase = "{bus}.dbc"\nnode = "A"\nrestbus = true\nport = {43200 + k}\n'
            text += f"cycle_s = {{ {cycles} }}\n"
            for i in range(n):
                text += f'[bus.{bus}.e2e.M{i}]\nprofile = "SAE_J1850"\ncrc_signal = "crc"\ncounter_signal = "alive"\n'
            e2e = {f"M{i}": E2ESettings("SAE_J1850", crc_signal="crc", counter_signal="alive") for i in range(n)}
            of_b = CanDatabase.load(path, "B", e2e=e2e, timeouts_s={"*": 0.0})
            receivers[bus] = (RxState(of_b.tables), of_b.initial_table())
            load = 100.0 * n * long_s / CYCLE_S
            print(f"{bus}: {n} messages of {size} bytes, {1e6 * long_s:.0f} us each: load {load:.1f} %")
        (folder / "rig.toml").write_text(text)
        parts = build(load_plan(folder / "rig.toml"), float(ticks) * 1e-3, buffer_s=1.0)
        recorder = Recorder(folder, sync="close")
        header = bus_header("load", buses=[{"name": bus.name} for bus in parts.buses])
        names = [bus.name for bus in parts.buses]
        forms = [BusStreamed(form, folder, names, datetime.now(UTC), 0) for form in options.forms]
        recorder.add_stream("bus", header, parts.bus_log, forms=forms, count=count_frames)
        bad, sent = watch(parts, receivers, counts, ticks, recorder)
        return bad or on_disk(folder, recorder, sent, options.forms)


def on_disk(folder: Path, recorder: Recorder, sent: Counter, forms: list[str]) -> int:  # type: ignore[type-arg]
    """1 when something that was sent is not in a file, or there is more."""
    status = recorder.close()
    told = {name: stream.records for name, stream in status.items()}
    frames, _, damage = read_bus(folder)
    read = {"bus": Counter(int(k) for k in frames["bus"])}
    for form in forms:
        log = can.LogReader(str(folder / f"bus.{form}"))
        read[f"bus.{form}"] = Counter(m.channel if isinstance(m.channel, int) else str(m.channel) for m in log)
    wanted, bad = sorted(sent.values()), 0
    for name, found in read.items():
        good = sorted(found.values()) == wanted and told[name] == sum(wanted) and not damage
        lost = f"{status[name].lost_records} lost, {status[name].discarded_bytes} bytes discarded"
        shown = f"{told[name]} counted by the recorder, {lost}; read back {dict(found)}"
        print(f"{name}: {shown}{'' if good else ' WRONG'}")
        bad += not good
    return 1 if bad else 0


def watch(parts, receivers, counts, ticks: int, recorder):  # type: ignore[no-untyped-def]
    """Run, receive, judge: (status, frames by bus)."""
    bad, begin = 0, time.monotonic()
    phases = {bus: Counter() for bus in receivers}
    last: dict[tuple[str, int], int] = {}
    frames, refused, wrong = Counter(), Counter(), Counter()
    parts.rig.begin(0)
    for tick in range(ticks):
        assert parts.rig.ticks(1, tick * TICK_NS) == 1, f"the rig stopped in tick {tick}"
        for bus in parts.buses:
            rx, table = receivers[bus.name]
            sent = bus.tx_ring.pop_all()
            for can_id, data, _, flags in sent:
                if rx.decode(table, can_id, data, tick * TICK_NS, flags):
                    refused[bus.name] += 1
                counter = data[1] & 15
                wrong[bus.name] += last.get((bus.name, can_id), counter - 1) + 1 & 15 != counter
                last[bus.name, can_id] = counter
            frames[bus.name] += len(sent)
            phases[bus.name][len(sent)] += tick >= 10
        if tick % 50 == 49:
            recorder.poll()
            parts.samples.drain()
    for bus, n in counts.items():
        expected = n * ticks // round(CYCLE_S * 1e3)
        missing = expected - frames[bus]
        spread = max(phases[bus]) - min(k for k, c in phases[bus].items() if c)
        shown = ", ".join(f"{k}: {c}" for k, c in sorted(phases[bus].items()) if c)
        wrongs = f"{refused[bus]} refused, {wrong[bus]} counters out of order"
        print(f"{bus}: {frames[bus]} frames, {missing} missing, {wrongs}; frames in a tick: {shown}")
        bad += missing != 0 or refused[bus] != 0 or wrong[bus] != 0 or spread > 1
    print(f"{ticks / 60_000:g} min of virtual time in {time.monotonic() - begin:.0f} s")
    return 1 if bad else 0, frames


if __name__ == "__main__":
    sys.exit(main())
