"""Run under LD_PRELOAD of malloc_counter.c: what ticks ask of the memory manager and how many page faults they take.

    python malloc_probe.py RIG_FILE OUT_DIR virtual|replay|real|planted SECONDS

Prints one JSON object. A tick of any kind must ask for nothing; `planted` allocates on purpose: the counter works.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "hil"))

from rig_help import Car, Unit, run

from torqueloop.cython_kernels.clock.rt_thread import thread_usage
from torqueloop.hil.realtime import rtenv
from torqueloop.hil.record.recording import read_stream
from torqueloop.hil.rig.assemble.parts import build
from torqueloop.hil.rig.resolve.plan import load_plan
from torqueloop.hil.rig.run.replay import INPUT_HEAD
from torqueloop.hil.rig.run.session import RunSpec, run_rig

KINDS = ("malloc", "calloc", "realloc", "free", "aligned", "mmap", "munmap", "brk", "marks")
BY_CLOCK, BY_SLEEP = 1, 2
counter = ctypes.CDLL(None)
counter.mc_count.restype = ctypes.c_long


def counts() -> dict[str, int]:
    """What the watched thread has asked for inside ticks so far."""
    return {kind: counter.mc_count(k) for k, kind in enumerate(KINDS)}


def virtual(rig_file: Path, out: Path, seconds: float) -> dict[str, Any]:
    """All ticks in one call: nobody else on the bus, the received values stay as they are."""
    parts = build(load_plan(rig_file), seconds + 1.0)
    parts.state.warm()
    parts.rig.begin(0)
    parts.rig.ticks(100, 0)
    before = thread_usage()["minor_faults"]
    counter.mc_watch(BY_CLOCK)
    done = parts.rig.ticks(round(seconds * 1000), 100_000_000)
    counter.mc_watch(0)
    return {"ticks": done, "faults": thread_usage()["minor_faults"] - before}


def replay(rig_file: Path, out: Path, seconds: float) -> dict[str, Any]:
    """Every tick of a run with its frames, shifts and vehicle values."""
    run(rig_file, out, seconds, Car(), Unit())
    parts = build(load_plan(rig_file), seconds)
    parts.state.warm()
    chunks = read_stream(out / "inputs").chunks
    parts.rig.begin(INPUT_HEAD.unpack_from(chunks[0])[5])
    ticks = 0
    for chunk in chunks:
        at = 0
        while at < len(chunk):
            counter.mc_watch(BY_CLOCK)
            at = parts.rig.replay(chunk, at)
            counter.mc_watch(0)
            ticks += 1
        for ring in (parts.samples, parts.inputs, parts.bus_log, parts.modes):
            while ring.drain():
                pass
        parts.buses[0].tx_ring.pop_all()
    return {"ticks": ticks, "events": parts.state.counters["events"], "rx_frames": parts.rig.counters()["rx_frames"]}


def real(rig_file: Path, out: Path, seconds: float) -> dict[str, Any]:
    """The whole rig on the real clock with its participants, watched while the thread of the loop exists."""
    prepare = rtenv.prepare_loop_thread

    def watched(priority: int, cpu: int | str) -> Any:
        done = prepare(priority, cpu)
        counter.mc_watch(BY_SLEEP)
        return done

    rtenv.prepare_loop_thread = watched  # type: ignore[assignment]
    result = run_rig(rig_file, RunSpec("real", seconds, out))
    return {"ticks": result.stats.clock.ticks, "state": result.state, "cause": result.stats.safe_state.cause}


def planted(rig_file: Path, out: Path, seconds: float) -> dict[str, Any]:
    """One allocation of each kind between two readings of the clock, one before and one after them."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype = libc.calloc.restype = libc.realloc.restype = ctypes.c_void_p
    libc.free.argtypes = [ctypes.c_void_p]
    libc.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    counter.mc_watch(BY_CLOCK)
    libc.malloc(8)
    time.monotonic_ns()
    block = libc.realloc(libc.malloc(100_000), 200_000)
    libc.calloc(3, 8)
    libc.free(block)
    libc.sbrk(0)
    time.monotonic_ns()
    libc.malloc(8)
    counter.mc_watch(0)
    return {"ticks": 0}


if __name__ == "__main__":
    what = {"virtual": virtual, "replay": replay, "real": real, "planted": planted}[sys.argv[3]]
    found = what(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[4]))
    print(json.dumps({**found, "counts": counts()}))
