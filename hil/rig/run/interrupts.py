"""Ctrl-C and the signals that end a run in order, wherever they find the program."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

#: signals that end a run in order, where the system has them
ENDING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Interrupts:
    """While the rig ticks, a signal whose handler raises KeyboardInterrupt only stops the rig: an exception could come
    between any two lines, also between those that close a recording. So does the first one while the run is closed.
    Before the first tick, and from the second one on while the run is closed, the exception is raised.

    In any thread but the main one no signal comes, and nothing is done.
    """

    def __init__(self) -> None:
        #: a signal has come since the first tick
        self.came: bool = False
        #: the rig does not tick any more
        self.over: bool = False
        self._stop: Callable[[], object] | None = None
        self._before: dict[int, Callable[[int, FrameType | None], Any]] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            handlers = {number: signal.getsignal(number) for number in ENDING}
            self._before = {number: handler for number, handler in handlers.items() if callable(handler)}
            for number in self._before:
                signal.signal(number, self._handle)
        return self

    def begin(self, stop: Callable[[], object]) -> None:
        """The first tick may come; `stop` ends them."""
        self._stop = stop

    def _handle(self, number: int, frame: FrameType | None) -> None:
        try:
            self._before[number](number, frame)
        except KeyboardInterrupt:
            if self._stop is None or (self.came and self.over):
                raise
            self.came = True
            self._stop()

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
