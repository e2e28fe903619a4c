"""The CAN codec in ns a frame against cantools, python-can and hilspy; instructions of the rest of a bus in a tick.

    python scripts/bench/bench_can.py              codec against the three, messages of the 4HP22's database
    python scripts/bench/bench_can.py --restbus    200 protected messages on 3 buses, counted by callgrind

Times depend on the machine and what else runs on it; all sides are measured in turn, the best of five counts. Ours
checks and makes checksum and counter; hilspy reads a log while it decodes, python-can has a virtual bus around it.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import can
import cantools
from instruction_counts import start_counting, under_callgrind

from torqueloop.cython_kernels.probes.bench import benchmark_ns
from torqueloop.hil.can.database import CanDatabase
from torqueloop.hil.rig.assemble.parts import build
from torqueloop.hil.rig.resolve.plan import load_plan

try:
    import hilspy
except ImportError:
    hilspy = None

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "rt_tests" / "vm"))
from stages.restbus_rig import SIZES, frames_per_s, write_restbus  # noqa: E402

DBC = ROOT / "configs" / "can" / "tcu_4hp22.dbc"
#: ticks that are counted: two rounds of all cycles
TICKS = 400


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

    plain = [(message.frame_id, data) for message, data in frames]
    named = [(message.name, given) for message, given in values]
    others = {
        "encode": {
            "cantools": best(encode, 500 * len(frames)),
            "python-can + cantools": python_can(theirs, named, encode=True),
            "hilspy": hilspy_encode(named),
        },
        "decode": {
            "cantools": best(decode, 500 * len(frames)),
            "python-can + cantools": python_can(theirs, plain, encode=False),
            "hilspy": hilspy_decode(plain),
        },
    }
    for what, mine in (("encode", min(x for x, _ in ours)), ("decode", min(x for _, x in ours))):
        print(f"{what}: {mine:.1f} ns a frame, {1e3 / mine:.1f} million frames/s")
        for name, other in others[what].items():
            text = "not installed" if other is None else f"{other:.0f} ns, {other / mine:.0f} x as long"
            print(f"    {name:22} {text}")


def python_can(database: Any, items: list[Any], *, encode: bool) -> float:
    """ns a frame on a virtual bus of python-can: encoded and sent, or received and decoded."""
    with can.Bus(interface="virtual", channel="bench") as one, can.Bus(interface="virtual", channel="bench") as two:
        times = []
        for _ in range(5):
            n, spent = 0, 0
            for _ in range(200):
                for key, content in items:
                    begin = time.perf_counter_ns()
                    if encode:
                        message = database.get_message_by_name(key)
                        data = message.encode(content, strict=False)
                        one.send(can.Message(arbitration_id=message.frame_id, data=data, is_extended_id=False))
                        spent += time.perf_counter_ns() - begin
                        two.recv(1.0)
                    else:
                        one.send(can.Message(arbitration_id=key, data=content, is_extended_id=False))
                        begin = time.perf_counter_ns()
                        frame = two.recv(1.0)
                        assert frame is not None
                        database.decode_message(frame.arbitration_id, frame.data, decode_choices=False)
                        spent += time.perf_counter_ns() - begin
                    n += 1
            times.append(spent / n)
    return min(times)


def hilspy_decode(frames: list[tuple[int, bytes]]) -> float | None:
    """ns a frame that hilspy reads from a candump log and decodes; None: it is not installed."""
    if hilspy is None:
        return None
    n = 4000
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "bench.log"
        lines = [f"({k * 1e-3:.6f}) can0 {i:03X}#{bytes(d).hex().upper()}" for k in range(n) for i, d in frames]
        log.write_text("\n".join(lines) + "\n")
        times = []
        for _ in range(5):
            with hilspy.open(f"file://{log}?format=candump", f"dbc:{DBC}", decode_choices=False) as channel:
                begin = time.perf_counter_ns()
                count = sum(bool(message.fields) for message in channel)
                times.append((time.perf_counter_ns() - begin) / len(lines))
                assert count == len(lines), count
    return min(times)


def hilspy_encode(values: list[tuple[str, Any]]) -> float | None:
    """ns a frame that hilspy encodes and sends to a bus in the process; None: it is not installed."""
    if hilspy is None:
        return None
    with hilspy.open("mem://bench", f"dbc:{DBC}") as channel:

        def send() -> None:
            for _ in range(500):
                for name, given in values:
                    channel.send(name, given)

        return best(send, 500 * len(values))


def worker(folder: Path, switch: str) -> int:
    """Under callgrind: the ticks with all buses, in a forked process."""
    parts = build(load_plan(write_restbus(folder, ROOT / "configs" / "examples" / "two_blocks.toml")), 1.0)
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
    frames = sum(frames_per_s()) * 1e-3
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
