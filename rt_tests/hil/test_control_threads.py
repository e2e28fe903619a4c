"""The control transaction between two threads that do not wait for each other: ticks without the GIL, and a control
thread that posts, changes its mind and posts again.

`rt_tests/fuzz/sanitize thread` runs the same with ThreadSanitizer.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rig_help import DESK

from torqueloop.cython_kernels.tick.control import HOLD, Image
from torqueloop.hil.rig.assemble.parts import RigParts, build
from torqueloop.hil.rig.resolve.plan import load_plan

TRANSACTIONS = 400


@contextmanager
def ticking(parts: RigParts) -> Iterator[Callable[[], None]]:
    """Ticks as fast as they come, in a thread of their own; waits for the answer to a transaction."""
    over = threading.Event()

    def tick() -> None:
        while not over.is_set() and parts.rig.ticks(50, 0) == 50:
            for ring in (parts.samples, parts.inputs, parts.bus_log, parts.modes):
                while ring.drain():
                    pass
            for bus in parts.buses:
                bus.tx_ring.pop_all()

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()

    def answered() -> None:
        while not parts.control.free:
            assert thread.is_alive(), f"the rig has stopped ticking: {parts.rig.cause()}"

    try:
        yield answered
    finally:
        over.set()
        thread.join()


def test_a_transaction_is_taken_whole_in_its_tick_or_not_at_all() -> None:
    plan = load_plan(DESK, {"safe_state.stop_after_s": -1.0})
    parts = build(plan, 1e5)
    control, rng = parts.control, random.Random(1)
    slots = [plan.table.slot(name) for name in ("driver.pedal", "TCU_Pressure_1.p_C4")]
    image, held, ended = Image(parts.rig.image_sizes()), {}, {"taken": 0, "taken back": 0, "too late": 0}
    parts.rig.begin(0)
    with ticking(parts) as answered:
        for k in range(TRANSACTIONS):
            wanted = dict.fromkeys(slots, float(k))
            at = parts.rig.tick + rng.randrange(40) if rng.random() < 0.7 else -1
            if rng.random() < 0.3:
                # for the next tick, which may look at it while another one is put in its place
                control.post([(slot, HOLD, -1.0) for slot in slots], target=image)
                if not control.cancel():
                    answered()
                    assert image.held() == dict.fromkeys(slots, -1.0)
                    held = image.held()
            control.post([(slot, HOLD, value) for slot, value in wanted.items()], at, target=image)
            changes = rng.random() < 0.3
            if changes and control.cancel():
                ended["taken back"] += 1
                assert control.free and control.held() == held
                continue
            ended["too late" if changes else "taken"] += 1
            answered()
            tick, good = control.answer()
            assert good and tick >= at and tick == image.tick, (tick, at)
            held = image.held()
            assert held == wanted == control.held()
    assert min(ended["taken"], ended["taken back"]) > 25, ended
