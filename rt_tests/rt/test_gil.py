"""The loop needs no GIL: it goes on ticking while a Python thread keeps it."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig_help import rig_file
from test_malloc import ALONE

from torqueloop.hil.realtime import rtenv
from torqueloop.hil.rig.assemble.parts import build
from torqueloop.hil.rig.resolve.plan import load_plan


@pytest.fixture
def greedy() -> Iterator[None]:
    """A thread that has the GIL is asked for it after 10 s only, and one C call is not interrupted at all."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(10.0)
    yield
    sys.setswitchinterval(before)


def test_the_4hp22_rig_ticks_while_the_gil_is_held(tmp_path: Path, greedy: None) -> None:
    """Codec, model, records and all. Counts, not times: the GIL is held until 200 ticks have gone by, and another
    Python thread that waits for it gets nothing done meanwhile."""
    parts = build(load_plan(rig_file(tmp_path, *ALONE)), 60.0)
    parts.state.warm()
    rig, counted, stop = parts.rig, [0], threading.Event()

    def waiting() -> None:
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0)  # lets go of the GIL, and has to take it again

    def loop() -> None:
        rtenv.prepare_loop_thread(80, "auto")
        rig.run()

    threads = [threading.Thread(target=loop), threading.Thread(target=waiting)]
    for thread in threads:
        thread.start()
    try:
        rig.arm()
        while rig.tick < 10:
            time.sleep(0.01)
        seen, rounds, first = [], 0, rig.tick
        # one long call after the other: sum() over a range keeps the GIL from its begin to its end
        while rig.tick < first + 200 and rounds < 1000:
            tick, heartbeat, others = rig.tick, rig.heartbeat, counted[0]
            sum(range(2_000_000))
            if counted[0] == others:
                seen.append((rig.tick - tick, rig.heartbeat - heartbeat))
            rounds += 1
    finally:
        stop.set()
        rig.stop()
        for thread in threads:
            thread.join()
    assert counted[0] > 0, "the waiting thread runs when it gets the GIL"
    assert sum(ticks for ticks, _ in seen) >= 100, f"(ticks, wakes) while the GIL was held: {seen}"
    # a loop that had to wait for the GIL could do one tick between two readings at most
    assert max(ticks for ticks, _ in seen) >= 2 and max(wakes for _, wakes in seen) >= 2
