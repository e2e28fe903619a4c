"""Shared by the tests of the control channel: a run in a thread, its channel, participants that give it time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import patch

from rig_help import Car, Unit
from waiting import PATIENCE_S, wait_for

from torqueloop.hil.control.client import Client, connect
from torqueloop.hil.results.files import read_run_info
from torqueloop.hil.rig.online.rig_control import RigControl
from torqueloop.hil.rig.run.session import RunResult, RunSpec, run_rig

#: this many ticks at the end of a run take this long each until the test joins the run
LAST_TICKS = 100
LAST_PAUSE_S = 0.5


class SlowCar(Car):
    """The vehicle model; each exchange takes a moment, so that a client has time to come between.

    before: simulated ticks for which the test asks something. Two ticks before each of them the vehicle waits until the
    rig has that request, so it comes in time on a busy machine, too.

    The last ticks of a run wait until the test joins it, LAST_PAUSE_S each, so that the run does not end while the test
    still asks it something.
    """

    def __init__(self, pause_s: float = 5e-4, before: tuple[int, ...] = ()) -> None:
        super().__init__()
        self.pause_s, self.before = pause_s, list(before)
        self.asked = threading.Semaphore(0)
        self.joined = threading.Event()
        #: the first of the last ticks; None: the run is not known
        self.last: int | None = None

    def __call__(self, message):
        time.sleep(self.pause_s)
        if self.last is not None and message.step >= self.last:
            self.joined.wait(LAST_PAUSE_S)
        if self.before and message.step >= self.before[0] - 2:
            self.before.pop(0)
            assert self.asked.acquire(timeout=PATIENCE_S), "no request came"
        return super().__call__(message)


class Running:
    """A run in a thread of its own. `client` is connected to its control channel."""

    def __init__(self, path: Path, out: Path, seconds: float, **more) -> None:
        self.out = out
        self.result: RunResult | None = None
        self.error: BaseException | None = None
        options = {"clock": "virtual", "vehicle": SlowCar(), "ecus": {"tcu": Unit()}}
        options |= {"control": "tcp://127.0.0.1:0", **more}
        if options["clock"] == "real":
            options["vehicle"] = options["ecus"] = None

        exchange, car = RigControl.exchange, options["vehicle"]
        self._joined = threading.Event()
        if isinstance(car, SlowCar):
            car.last, car.joined = round(1e3 * seconds) - LAST_TICKS, self._joined

        def seen(control: RigControl, at: int, post: Callable[[], None]) -> int:
            def posted() -> None:
                post()
                if at >= 0:
                    car.asked.release()

            return exchange(control, at, posted)

        def body() -> None:
            waits = isinstance(car, SlowCar) and bool(car.before)
            watched = patch.object(RigControl, "exchange", seen) if waits else nullcontext()
            try:
                with watched:
                    self.result = run_rig(path, RunSpec(duration_s=seconds, out=out, **options))
            except BaseException as error:
                self.error = error

        self._thread = threading.Thread(target=body)
        self._thread.start()

    def endpoint(self) -> str:
        """Where the channel is, once the rig takes ticks or waits to be armed."""

        def known() -> str | None:
            info = read_run_info(self.out)
            return info.control if info is not None else None

        found = wait_for(lambda: known() or self.error)
        assert isinstance(found, str), f"no control channel: {found!r}"
        return found

    def client(self, **more) -> Client:
        """A client, once the first tick is done."""
        rig = connect(self.endpoint(), **{"timeout_s": PATIENCE_S, **more})
        wait_for(lambda: rig.status()["ticks"] > 0, self._thread.is_alive)
        return rig

    def join(self) -> RunResult:
        """The result; a run that failed raises here."""
        self._joined.set()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "the run does not end"
        if self.error is not None:
            raise self.error
        assert self.result is not None
        return self.result
