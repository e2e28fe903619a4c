"""The CAN codec in ns a frame against cantools, and instructions of the rest of a bus in a tick.

    python scripts/bench_can.py              codec against cantools, messages of the 4HP22's database
    python scripts/bench_can.py --restbus    200 protected messages on 3 buses, counted by callgrind

Times depend on the machine and what else runs on it; both sides are measured in turn, the best of five counts.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import cantools
from instruction_counts import start_counting, under_callgrind

from torqueloop.cython_kernels.probes.bench import benchmark_ns
from torqueloop.hil.can.database import CanDatabase
from torqueloop.hil.rig.assemble.parts import build
from torqueloop.hil.rig.describe.plan import load_plan

ROOT = Path(__file__).resolve().parent.parent
DBC = ROOT / "configs" / "can" / "tcu_4hp22.dbc"
#: messages on each bus, and ticks that are counted: two rounds of all cycles
SIZES, TICKS = (70, 70, 60), 400
CYCLES_MS = (10, 20, 50, 100, 200)


def best(work: Callable[[], None], frames: int) -> float:
    """ns a frame, the best of five."""
    times = []
    for _ in range(5):
        begin = time.perf_counter_ns()
        work()
        times.append((time.perf_counter_ns() - begin) / frames)
    return min(times)


def codec() -> None:
    """Encode and decode what the rig sends, by both."""
    sender, receiver = CanDatabase.load(DBC, "HIL"), CanDatabase.load(DBC, "TCU")
    theirs = cantools.database.load_file(DBC)
    ours = [benchmark_ns(sender.tables, receiver.tables, sender.initial_table(), 20_000) for _ in range(5)]
    made = sender.codec()
    frames = [(theirs.get_message_by_name(m.name), made.encode(m.name, {})) for m in sender.tx_messages]
    values = [(message, message.decode(data, decode_choices=False)) for message, data in frames]

    def decode() -> None:
        for _ in range(500):
            for message, data in frames:
                message.decode(data, decode_choices=False)

    def encode() -> None:
        for _ in range(500):
            for message, given in values:
                message.encode(given, strict=False)

    for what, mine, other in (("encode", min(x for x, _ in ours), best(encode, 500 * len(frames))),
                              ("decode", min(x for _, x in ours), best(decode, 500 * len(frames)))):  # fmt: skip
        print(
            f"{what}: {mine:.1f} ns a frame ({1e3 / mine:.1f} million/s); cantools {other:.0f} ns: {other / mine:.0f} x"
        )


def restbus_rig(folder: Path) -> Path:
    """200 messages on 3 buses, each with SAE J1850 checksum and counter."""
    text = f'[rig]\nname = "restbus"\n[plant]\npowertrain = "{ROOT / "configs" / "examples" / "two_blocks.toml"}"\n'
    text += '[inputs]\n"u1.f" = { value = 0.0 }\n"u2.f" = { value = 0.0 }\n'
    for k, n in enumerate(SIZES):
        lines = ['VERSION ""', "BU_: A TCU"]
        for i in range(n):
            lines.append(f'BO_ {256 + i} M{i}: 8 A\n SG_ crc : 0|8@1+ (1,0) [0|0] "" TCU')
            lines.append(' SG_ alive : 8|4@1+ (1,0) [0|0] "" TCU')
            lines += [f' SG_ v{j} : {16 + 8 * j}|8@1+ (1,0) [0|0] "" TCU' for j in range(6)]
        (folder / f"b{k}.dbc").write_text("\n".join(lines) + "\n")
        cycles = ", ".join(f"M{i} = {CYCLES_MS[i % len(CYCLES_MS)] / 1e3}" for i in range(n))
        text += f'[bus.b{k}]\ndatabase = "b{k}.dbc"\nnode = "A"\nrestbus = true\ncycle_s = {{ {cycles} }}\n'
        for i in range(n):
            text += f'[bus.b{k}.e2e.M{i}]\nprofile = "SAE_J1850"\ncrc_signal = "crc"\ncounter_signal = "alive"\n'
    (folder / "rig.toml").write_text(text)
    return folder / "rig.toml"


def worker(folder: Path, switch: str) -> int:
    """Under callgrind: the ticks with all buses, in a forked process."""
    parts = build(load_plan(restbus_rig(folder)), 1.0)
    child = os.fork()
    if child == 0:
        start_counting(switch)
        parts.state.warm()
        parts.rig.begin(0)
        parts.rig.ticks(TICKS, 0)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    print(f"0 {child}", flush=True)
    return 1 if status else 0


def restbus() -> None:
    """Instructions of sending in a tick."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(Path(__file__).resolve()), "--worker", folder]
        profile = under_callgrind(command, "*tick_rig_tick", Path(folder), lambda: None)[0]
    frames = sum(n / len(CYCLES_MS) / cycle for n in SIZES for cycle in CYCLES_MS)
    names = ("codec_encode", "protect_", "_send", "frames_push", "data_push", "codec_next")
    sending = sum(cost for name, cost in profile.items() if any(part in name for part in names)) / TICKS
    print(f"{sum(SIZES)} messages on {len(SIZES)} buses, {frames:.1f} frames a tick of 1 ms")
    print(f"{sum(profile.values()) / TICKS:.0f} instructions a tick in all, {sending:.0f} to make and send frames")


def main() -> int:
    """See the head of this file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--restbus", action="store_true", help="count instructions of 200 messages on 3 buses")
    parser.add_argument("--worker", nargs=2, metavar=("DIR", "SWITCH"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return worker(Path(options.worker[0]), options.worker[1])
    if options.restbus:
        restbus()
    else:
        codec()
    return 0


if __name__ == "__main__":
    sys.exit(main())
