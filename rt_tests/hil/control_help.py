"""Shared by the tests of the control channel: a run in a thread, its channel, peers that give it time."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from rig_help import Car, Unit

from torqueloop.hil.control.client import Client, connect
from torqueloop.hil.results.files import read_run_info
from torqueloop.hil.rig.run.session import RunResult, RunSpec, run_rig


class SlowCar(Car):
    """The vehicle model; each exchange takes a moment, so that a client has time to come between: with `before` a
    second more, in the hundred ticks before that one."""

    def __init__(self, pause_s: float = 5e-4, before: int = 0) -> None:
        super().__init__()
        self.pause_s, self.before = pause_s, before

    def __call__(self, message):
        time.sleep(0.01 if 0 < self.before - message.step <= 100 else self.pause_s)
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

        def body() -> None:
            try:
                self.result = run_rig(path, RunSpec(duration_s=seconds, out=out, **options))
            except BaseException as error:
                self.error = error

        self._thread = threading.Thread(target=body)
        self._thread.start()

    def endpoint(self) -> str:
        """Where the channel is, once the rig takes ticks or waits to be armed."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and self.error is None:
            info = read_run_info(self.out)
            if info is not None and info.control is not None:
                return info.control
            time.sleep(0.005)
        raise AssertionError(f"no control channel: {self.error}")

    def client(self, **more) -> Client:
        """A client, once the first tick is done."""
        rig = connect(self.endpoint(), **more)
        deadline = time.monotonic() + 30
        while rig.status()["ticks"] == 0 and time.monotonic() < deadline:
            time.sleep(0.005)
        return rig

    def join(self) -> RunResult:
        """The result; a run that failed raises here."""
        self._thread.join(60)
        assert not self._thread.is_alive(), "the run does not end"
        if self.error is not None:
            raise self.error
        assert self.result is not None
        return self.result
