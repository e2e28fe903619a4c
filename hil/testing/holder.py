"""A run in a thread of its own that a test holds between ticks (virtual clock) or goes along with (real clock).

On the virtual clock the run's thread stops before a tick unless that tick was let through, so what the test does falls
into a definite tick and the run is the same every time. On the real clock the rig goes on by itself.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torqueloop.core.describe.errors import TorqueloopError
from torqueloop.hil.rig.run.live_run import LiveRun
from torqueloop.hil.rig.run.session import RunResult, RunSpec, run_rig

#: a rig that neither starts nor ends within this is given up [s]
GIVE_UP_S = 60.0
#: real clock: conditions are looked at this often [s]
LOOK_S = 0.001


class RigEnded(TorqueloopError):
    """The rig is over, a test still wants something of it."""


class Holder:
    """One run. Every method but those of `Pilot` is called by the test's thread."""

    def __init__(self, rig: Path, clock: str, out: Path, **options: Any) -> None:
        self.virtual: bool = clock == "virtual"
        self.run: LiveRun | None = None
        self.result: RunResult | None = None
        self.error: BaseException | None = None
        self._news = threading.Condition()
        #: ticks that may still pass; what ends the passing early, looked at before each
        self._allowed = 0
        self._until: Callable[[], bool] | None = None
        self._held = self._over = self._freed = False
        self._thread = threading.Thread(
            target=self._body, args=(rig, clock, out, options), name="torqueloop-run", daemon=True
        )
        self._thread.start()
        self._await_start()

    # --- Pilot: the run's thread ------------------------------------------------------------------------------------
    def attached(self, run: LiveRun) -> None:
        """The run is built."""
        run.control.posted = self._posted
        with self._news:
            self.run = run
            self._news.notify_all()

    def between(self) -> None:
        """Wait here until the test lets a tick pass."""
        if self._allowed > 0 and (self._until is None or not self._until()):
            self._allowed -= 1
            return
        with self._news:
            self._allowed, self._held = 0, True
            self._news.notify_all()
            while not self._allowed and not self._freed:
                self._news.wait()
            self._held = False
            self._allowed -= 1

    def _body(self, rig: Path, clock: Any, out: Path, options: dict[str, Any]) -> None:
        try:
            self.result = run_rig(rig, RunSpec(clock, out=out, pilot=self, **options))
        except BaseException as error:
            self.error = error
        with self._news:
            self._over = True
            self._news.notify_all()

    # --- the test's thread ------------------------------------------------------------------------------------------
    @property
    def live(self) -> LiveRun:
        """The run; an error if there is none."""
        assert self.run is not None
        return self.run

    @property
    def over(self) -> bool:
        """The run has ended."""
        return self._over

    @property
    def tick(self) -> int:
        """Simulated tick that comes next."""
        return int(self.live.parts.rig.sim_tick)

    def _await_start(self) -> None:
        deadline = time.monotonic() + GIVE_UP_S
        with self._news:
            while not self._over and (self.run is None or (self.virtual and not self._held)):
                if not self._news.wait(deadline - time.monotonic()):
                    break
        while not self.virtual and not self._over and self.live.parts.rig.tick == 0 and time.monotonic() < deadline:
            time.sleep(LOOK_S)
        if self.error is not None:
            raise self.error
        if self.run is None:
            raise RigEnded(f"the rig has not started within {GIVE_UP_S:g} s")

    def check(self) -> None:
        """RigEnded, or what ended the run, if it is over."""
        if self.error is not None:
            raise self.error
        if self._over or self.live.parts.rig.finished:
            raise RigEnded("the rig has ended: its duration is over, or it was stopped")

    def pass_ticks(self, ticks: int, until: Callable[[], bool] | None = None) -> bool:
        """Let so many ticks pass; fewer when `until` holds, which is asked before each (virtual clock) or every LOOK_S
        (real clock). True: it held."""
        self.check()
        if not self.virtual:
            return self._watch(ticks, until)
        with self._news:
            self._until, self._allowed = until, ticks
            self._news.notify_all()
            while not self._over and (self._allowed > 0 or not self._held):
                self._news.wait()
            self._until = None
        if self._over:
            self.check()
        return until is not None and until()

    def _watch(self, ticks: int, until: Callable[[], bool] | None) -> bool:
        last = self.tick + ticks
        while True:
            if until is not None and until():
                return True
            if self.tick >= last:
                return False
            self.check()
            time.sleep(LOOK_S)

    def _posted(self) -> None:
        if self.virtual and threading.current_thread() is not self._thread:
            self.pass_ticks(1)

    def end(self) -> RunResult:
        """End the run; what it left. Raises what ended it before."""
        if self.run is not None:
            self.run.parts.rig.stop()
        with self._news:
            self._freed = True
            self._news.notify_all()
        self._thread.join(GIVE_UP_S)
        if self.error is not None:
            raise self.error
        if self.result is None:
            raise RigEnded(f"the rig does not end within {GIVE_UP_S:g} s")
        return self.result
