"""Safe state in words, and the watchdog that sees a hung loop.

The safe state itself lives in the tick (cython_kernels/tick.pyx): latched with its first cause, never left during a
run. Its reaction is declared in the rig file: named signals ramp to a target, by default every clutch pressure and the
pedal to 0. Where the state of the model cannot be trusted (NaN, solver) physics is frozen and nothing more is sent, so
that the control unit sees a silent rig instead of a wrong one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

#: cause -> sentence; {detail} and {name} are filled in
SENTENCES = {
    "none": "not latched",
    "not_finite": "model state or output {name} is not finite",
    "limit": "{name} left its limits",
    "overruns": "{detail} overruns in a row",
    "tcu_silent": "required message {name} of the control unit stayed away longer than its timeout",
    "vehicle_silent": "no value from the vehicle model for {detail} ms",
    "vehicle_data": "{detail} values from the vehicle model refused (not finite or against the schema)",
    "solver": "the solver reported status {detail}",
    "hung": "the loop gave no heartbeat for {detail} ms",
    "thread": "a thread or process the rig depends on has ended: {name}",
    "bus": "the bus takes no frames ({detail} lost in a row)",
    "request": "asked for by the operator",
    "tcu_frames": "frames of required message {name} came but were refused (length, checksum, counter, value) "
    "until it timed out",
    "encode": "a signal of {name} to be sent is not a number",
}


def describe(cause: dict[str, Any], name: str = "") -> str:
    """The cause of Rig.cause() as a sentence."""
    text = SENTENCES[cause["cause"]].format(detail=cause["detail"], name=name or f"#{cause['detail']}")
    return text if not cause["latched"] else f"{text} (tick {cause['tick']})"


class Heartbeat(Protocol):
    """What the watchdog needs of a rig."""

    @property
    def heartbeat(self) -> int: ...
    @property
    def running(self) -> bool: ...
    def request_safe(self, cause: str, detail: int = 0) -> bool: ...
    def stop(self) -> None: ...


class Watchdog(threading.Thread):
    """Looks at the loop's heartbeat from a thread of its own; real-time: no, it must not depend on the loop's rights.

    No new heartbeat for `limit_s`: the loop hangs. The safe state is requested, so that a loop that comes back goes
    into it at its next tick and ends; `on_hung` is called once, at once (the session closes the bus so that nothing
    more is sent).
    """

    def __init__(self, rig: Heartbeat, limit_s: float, on_hung: Callable[[float], None] | None = None) -> None:
        super().__init__(name="torqueloop-watchdog", daemon=True)
        self._rig, self._limit_s, self._on_hung = rig, limit_s, on_hung
        self._stop_asked = threading.Event()
        #: longest time without a new heartbeat seen [s]; resolution is a quarter of the limit
        self.longest_s = 0.0
        #: the loop was found hung
        self.hung = False

    def run(self) -> None:
        last, since = self._rig.heartbeat, time.monotonic()
        looked = since
        pause = self._limit_s / 4
        while not self._stop_asked.wait(pause):
            now = time.monotonic()
            beat = self._rig.heartbeat
            if beat != last or not self._rig.running:
                last, since = beat, now
            elif now - looked > 2 * pause + 0.05:
                # this thread itself was not run for long: it cannot accuse the loop of what it did not see
                since += now - looked - pause
            looked = now
            self.longest_s = max(self.longest_s, now - since)
            if now - since > self._limit_s and not self.hung:
                self.hung = True
                self._rig.request_safe("hung", round(1e3 * (now - since)))
                if self._on_hung is not None:
                    self._on_hung(now - since)

    def stop(self) -> None:
        """End the thread."""
        self._stop_asked.set()
        if self.is_alive():
            self.join(2.0)
