#!/usr/bin/env python
"""Rigs killed with SIGKILL at random moments of a recording: what is readable by us, by asammdf, pyarrow, as text.

rt_tests/fuzz/kill_recording.py [--times 20] [--seed 1] [--rig desk_4hp22]

The rig runs on the virtual clock, as fast as it goes, and writes signals/ and all forms beside it: so it is killed in
the middle of something. Every form must be a beginning of what is in signals/, to the bit, at most one chunk shorter
(of Parquet: one part). Exit status 1 where one is not.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import can
import numpy as np
from asammdf import MDF
from pyarrow import parquet

from torqueloop.hil.record.bus_log import count_frames, messages, read_bus
from torqueloop.hil.record.bus_stream import HOLD_NS
from torqueloop.hil.record.pieces import Pieces, SignalPieces
from torqueloop.hil.record.run_data import read_signals
from torqueloop.hil.record.streamed import PART_SAMPLES

FORMS = '["mf4", "csv", "parquet"]'
BUS = ("blf", "asc", "mf4", "log")
#: frames of the time that waits for the next chunk, two a tick at most
HELD = 2 * HOLD_NS // 1_000_000


def one(rig: str, out: Path, wait_s: float) -> None:
    """A rig that is killed so long after its first chunk."""
    command = [sys.executable, "-m", "torqueloop.hil.cli", "run", rig, "--clock", "virtual", "--duration", "10000"]
    command += ["--out", str(out), "--no-html", "--quiet", "--set", f"record.formats={FORMS}"]
    command += ["--set", f"record.bus_formats={list(BUS)}".replace("'", '"')]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not (out / "signals.mf4").exists():
            if process.poll() is not None:
                raise SystemExit(f"the rig ended by itself: {' '.join(command)}")
            time.sleep(0.005)
        time.sleep(wait_s)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def judged(out: Path) -> tuple[list[str], bool]:
    """(numbers, all good) of a killed run."""
    signals = read_signals(out)
    last = max((len(piece) for piece in SignalPieces.of(out)), default=0)
    names = [name for name in signals.names if name.startswith(("engine.", "C", "car."))]
    kept = signals.part(0, signals.n)
    told, good = [f"signals {signals.n}", f"damage {len(signals.damage)}"], not signals.closed

    def look(form: str, n: int, equal: bool, behind: int) -> None:
        nonlocal good
        # the chunk of a form may be whole while that of another was being written
        fine = equal and signals.n - behind <= n <= signals.n
        good = good and fine
        told.append(f"{form} {n}{'' if fine else ' WRONG'}")

    with MDF(out / "signals.mf4") as mdf:
        read = [mdf.get(name) for name in names]
        n = len(read[0].samples)
        equal = all(r.samples.tobytes() == kept[name][:n].tobytes() for r, name in zip(read, names, strict=True))
        look("mf4", n, equal and read[0].timestamps.tobytes() == signals.t[:n].tobytes(), last)
    parts = sorted((out / "signals.parquet").glob("[0-9]*.parquet"))
    table = parquet.read_table(out / "signals.parquet") if parts else None
    n = table.num_rows if table is not None else 0
    equal = table is None or all(table[name].to_numpy().tobytes() == kept[name][:n].tobytes() for name in names)
    look("parquet", n, equal, PART_SAMPLES + last)
    text = (out / "signals.csv").read_text() if (out / "signals.csv").exists() else ""
    lines = text.splitlines(keepends=True)
    whole = [line for line in lines[2:] if line.endswith("\n")]
    column = lines[0].rstrip("\n").split(",").index("engine.w") if whole else 0
    values = np.array([float(line.split(",")[column]) for line in whole])
    look("csv", len(values), values.tobytes() == kept["engine.w"][: len(values)].tobytes(), last)
    frames, header, _ = read_bus(out)
    sent = list(messages(frames, int(header.get("epoch_ns", 0))))
    # what of bus/ is the last chunk
    chunks = [count_frames(payload) for payload in Pieces.of(out / "bus")]
    behind = (chunks[-1] if chunks else 0) + HELD
    for form in BUS:
        read = frames_of(out / f"bus.{form}")
        equal = all(key(a) == key(b) for a, b in zip(sent, read, strict=False))
        fine = equal and len(sent) - behind <= len(read) <= len(sent)
        good = good and fine
        told.append(f"bus.{form} {len(read)} of {len(sent)}{'' if fine else ' WRONG'}")
    return told, good


def key(message: can.Message) -> tuple[object, ...]:
    """What a frame is."""
    return message.arbitration_id, message.is_extended_id, message.is_fd, message.is_rx, bytes(message.data)


def frames_of(path: Path) -> list[can.Message]:
    """Frames that python-can reads, up to a last line that was cut."""
    found: list[can.Message] = []
    if path.exists():
        with suppress(ValueError, IndexError):
            found.extend(can.LogReader(str(path)))
    return found


def main() -> int:
    """Kill and look, so many times."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rig", default="desk_4hp22")
    arguments = parser.parse_args()
    moments = random.Random(arguments.seed)
    folder, bad = Path(tempfile.mkdtemp(prefix="torqueloop-kill-")), 0
    for k in range(arguments.times):
        wait_s = moments.uniform(0.0, 4.0)
        one(arguments.rig, folder / str(k), wait_s)
        told, good = judged(folder / str(k))
        bad += not good
        print(f"{k + 1:3}  killed {wait_s:.3f} s after the first chunk: {', '.join(told)}", flush=True)
        shutil.rmtree(folder / str(k))
    print(f"{arguments.times - bad} of {arguments.times} good")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
