"""A flag that signals set: it asks a participant process to end."""

from __future__ import annotations

import signal
import threading
from typing import Protocol


class Stop(Protocol):
    """What a loop asks; threading.Event is one."""

    def is_set(self) -> bool: ...


class StopFlag:
    """Set by SIGTERM and SIGINT, or by the event of the caller.

    A plain attribute and no threading.Event: a handler that runs inside Event.set() of another signal waits for the
    lock its own thread holds, for ever. A killed rig sends two signals: one for each of its threads that the child
    had as parent.
    """

    def __init__(self, outer: Stop | None = None) -> None:
        self._set, self._outer = False, outer
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, self._handle)

    def _handle(self, *_: object) -> None:
        self._set = True

    def is_set(self) -> bool:
        """The loop is to end."""
        return self._set or (self._outer is not None and self._outer.is_set())
