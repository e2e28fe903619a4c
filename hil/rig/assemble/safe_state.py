"""Safe state in words, and the watchdog that sees a hung loop.

The safe state itself lives in the tick (cython_kernels/tick/): latched with its first cause, never left during a
run. Its reaction is declared in the rig file: named signals ramp to a target, by default every clutch pressure and the
pedal to 0. Where the state of the model cannot be trusted (NaN, solver) physics is frozen and nothing more is sent, so
that the control unit sees a silent rig instead of a wrong one.
"""

from __future__ import annotations

import threading
from typing import Any

from torqueloop.cython_kernels.can.socketcan import BUS_STATES
from torqueloop.cython_kernels.tick.rig import Rig
from torqueloop.cython_kernels.tick.watchdog import Watch

#: cause -> sentence; {detail} and {name} are filled in
SENTENCES = {
    "none": "not latched",
    "not_finite": "model state or output {name} is not finite",
    "limit": "{name} left its limits",
    "overruns": "{detail} overruns in a row",
    "missed": "the loop began a tick {detail} whole periods late, and the policy is to stop",
    "tcu_silent": "required message {name} of the control unit did not arrive within its timeout",
    "vehicle_silent": "no value from the vehicle model for {detail} ms",
    "vehicle_data": "{detail} values from the vehicle model refused (not finite or against the schema)",
    "solver": "the solver could not resolve a step in {detail} ticks in a row",
    "hung": "the loop gave no heartbeat for {detail} ms",
    "thread": "a thread or process the rig depends on has ended or is silent: {name}",
    "bus": "the bus takes no frames ({detail} lost in a row)",
    "request": "requested by the operator",
    "tcu_frames": "frames of required message {name} came but were refused (length, checksum, counter, value) "
    "until it timed out",
    "encode": "a signal of {name} to be sent is not a number",
    "output": "{name}, to be sent, left its range or slew",
    "io": "I/O device {name}",
}


def describe(cause: dict[str, Any], name: str = "") -> str:
    """The cause of Rig.cause() as a sentence."""
    if cause["cause"] == "bus" and cause["detail"] < 0:
        # native SocketCAN: not frames were lost, the bus itself was away
        text = f"the CAN bus: {BUS_STATES[-cause['detail']]} for too long"
        return text if not cause["latched"] else f"{text} (tick {cause['tick']})"
    text = SENTENCES[cause["cause"]].format(detail=cause["detail"], name=name or f"#{cause['detail']}")
    return text if not cause["latched"] else f"{text} (tick {cause['tick']})"


class Watchdog(threading.Thread):
    """The thread in which `cython_kernels.watchdog` looks at the loop's heartbeat, without the GIL.

    `priority`: SCHED_FIFO priority to ask for, above the loop's; without the right to it, or with 0, it runs as any
    other thread. No new heartbeat for `limit_s`: the loop hangs, see there for what is done at once.
    """

    def __init__(self, rig: Rig, limit_s: float, priority: int = 0) -> None:
        super().__init__(name="torqueloop-watchdog", daemon=True)
        self._watch = Watch(rig.pulse, limit_s, priority)

    def run(self) -> None:
        self._watch.run()

    @property
    def hung(self) -> bool:
        """The loop was found hung."""
        return self._watch.hung_ns != 0

    @property
    def hung_ns(self) -> int:
        """When it was found hung, on the clock of the rig [ns]; 0: never."""
        return self._watch.hung_ns

    @property
    def longest_s(self) -> float:
        """Longest time without a new heartbeat seen [s]; resolution is 0.05 s or a quarter of the limit."""
        return self._watch.longest_s

    def stop(self) -> None:
        """End the thread."""
        self._watch.stop()
        if self.is_alive():
            self.join(2.0)
