"""Random and mutated frames, and random messages, into everything that receives: no crash, nothing changed by what is
refused, bounded time.

    python rt_tests/fuzz/fuzz_receivers.py [--frames 10000000] [--messages 1000000] [--seed 1]

Frames go into the receivers of all nodes of all installed CAN databases: right frames (of our sender), such with one
to eight bytes, a bit, the length or the identifier changed, and frames of random bytes. What is not taken must leave
all signals as they were; what is taken must be finite. Messages go into the readers of the control channel, the
vehicle link and control units of other programs: an answer, or an error of ours. Random numbers start from the seed.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

from torqueloop.core.describe.errors import TorqueloopError
from torqueloop.cython_kernels.can.codec import STATUS_NAMES, RxState
from torqueloop.hil.can.database import CanDatabase, bus_id
from torqueloop.hil.can.frame import FD_FLAG, FD_LENGTHS
from torqueloop.hil.can.load import read_database
from torqueloop.hil.control.messages import Request, RequestError, decode_request, encode_request
from torqueloop.hil.ecu.messages import decode_answer, pack
from torqueloop.hil.link.messages import ByeMessage, SchemaError, StepMessage, decode, encode

LENGTHS = sorted(FD_LENGTHS)
CAN = Path(__file__).resolve().parents[2] / "configs" / "can"


class Receiver:
    """One node of one database, with frames of a sender to begin with."""

    def __init__(self, path: Path, node: str) -> None:
        database = CanDatabase.load(path, node, timeouts_s={"*": 0.0})
        self.rx, self.table = RxState(database.tables), database.initial_table()
        self.right: list[tuple[int, bytes, int]] = []
        for other in {s for m in database.rx_messages for s in _senders(path, m.name)}:
            sender = CanDatabase.load(path, other, timeouts_s={"*": 0.0})
            codec = sender.codec()
            for message in sender.tx_messages:
                for _ in range(4):
                    self.right.append((bus_id(message), codec.encode(message.name, {}), FD_FLAG if message.fd else 0))

    def take(self, can_id: int, data: bytes, flags: int, now_ns: int) -> str:
        """Status of one frame; AssertionError when what is refused has changed a signal."""
        before = self.table.tobytes()
        status = self.rx.decode(self.table, can_id, data, now_ns, flags)
        if status:
            assert self.table.tobytes() == before, (STATUS_NAMES[status], hex(can_id), data.hex())
        return STATUS_NAMES[status]


def _senders(path: Path, message: str) -> list[str]:
    return [str(s) for s in read_database(path).get_message_by_name(message).senders]


def changed(frame: tuple[int, bytes, int], rng: random.Random) -> tuple[int, bytes, int]:
    """A frame near a right one."""
    can_id, data, flags = frame
    out, what = bytearray(data), rng.randrange(8)
    if what < 3 and out:
        for _ in range(rng.randint(1, 8)):
            out[rng.randrange(len(out))] = rng.randrange(256)
    elif what < 6 and out:
        bit = rng.randrange(8 * len(out))
        out[bit // 8] ^= 1 << bit % 8
    elif what == 6:
        n = rng.choice(LENGTHS)
        out, flags = (out + bytes(64))[:n], FD_FLAG if n > 8 else flags
    else:
        can_id, flags = (
            rng.choice((can_id ^ 1 << rng.randrange(32), rng.randrange(1 << 11))),
            rng.choice((flags, FD_FLAG)),
        )
    return can_id, bytes(out), flags


def frames(n: int, rng: random.Random) -> int:
    """So many frames into the receivers in turn; the number of mistakes."""
    receivers = []
    for path in sorted(CAN.glob("*.dbc")):
        receivers += [Receiver(path, node.name) for node in read_database(path).nodes]
    receivers = [r for r in receivers if r.right]
    counts: Counter[str] = Counter()
    longest, begin = 0, time.monotonic()
    for k in range(n):
        receiver = receivers[k % len(receivers)]
        if k & 3 == 0:
            length = rng.choice(LENGTHS)
            frame = (rng.choice(receiver.right)[0], rng.randbytes(length), FD_FLAG if length > 8 else 0)
        else:
            frame = rng.choice(receiver.right)
            frame = changed(frame, rng) if k & 3 != 1 else frame
        start = time.thread_time_ns()
        counts[receiver.take(*frame, k * 1000)] += 1
        longest = max(longest, time.thread_time_ns() - start)
    assert all(np.isfinite(r.table).all() for r in receivers)
    told = ", ".join(f"{name} {count}" for name, count in counts.most_common())
    print(f"{n} frames into {len(receivers)} receivers in {time.monotonic() - begin:.0f} s: {told}")
    print(f"    longest {longest / 1e3:.0f} us of the thread's time, with the comparison of all signals around it")
    return 0


def messages(n: int, rng: random.Random) -> int:
    """So many messages into the readers."""
    right = {
        decode: [encode(StepMessage(1, 0.1, 2.0, 3.0, 4.0, 5.0, 0.0)), encode(ByeMessage("end"))],
        decode_answer: [pack("out", step=3, frames=[[0, 1, 0, bytes(8)]], actuators=[1.0]), pack("ready")],
        decode_request: [encode_request(Request("get", 1, ("engine.w",)))],
    }
    counts: Counter[str] = Counter()
    begin = time.monotonic()
    for k in range(n):
        reader = list(right)[k % len(right)]
        data = bytearray(rng.choice(right[reader]))
        if k & 1:
            for _ in range(rng.randint(1, 6)):
                data[rng.randrange(len(data))] = rng.randrange(256)
        else:
            data = bytearray(rng.randbytes(rng.randrange(1, 80)))
        try:
            reader(bytes(data))
            counts["taken"] += 1
        except (SchemaError, RequestError, TorqueloopError) as error:
            counts[type(error).__name__] += 1
    told = ", ".join(f"{name} {count}" for name, count in counts.most_common())
    print(f"{n} messages into {len(right)} readers in {time.monotonic() - begin:.0f} s: {told}")
    return 0


def main() -> int:
    """Ends with an error at the first thing that is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=10_000_000)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rng = random.Random(given.seed)
    return frames(given.frames, rng) or messages(given.messages, rng)


if __name__ == "__main__":
    sys.exit(main())
