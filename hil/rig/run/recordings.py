"""Recordings that a client begins and ends while a run goes on: `recordings/NAME` in the run directory. real-time: no.

    recordings/NAME/run.json    as that of the run, `part_of` says of which one, and of which ticks
                    signals/    every tick from the beginning to the end of it, all signals or those asked for
                    bus/        the frames of that time
                    config/     as that of the run

So each is a directory that `report`, `export`, `read_run` take as they take that of a run. The recorder's thread writes
them from what it has drained anyway; the tick knows nothing of it. `replay` of one runs the whole run again, up to its
last tick, and compares what it holds.
"""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import threading
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from torqueloop.core.describe.classes import dataclass
from torqueloop.hil.control.messages import RequestError
from torqueloop.hil.record.part import SignalPart, StreamPart
from torqueloop.hil.record.recorder import Form, Recorder
from torqueloop.hil.record.run_folder import RunFolder, now_text
from torqueloop.hil.results.clock import ClockStats
from torqueloop.hil.results.files import write_run_info
from torqueloop.hil.results.run import PartOf, RunInfo, RunStats

#: folder of the recordings in the run directory
FOLDER = "recordings"
#: at a time, and in a run
AT_A_TIME, IN_A_RUN = 8, 200
#: no dot: the ending of a stream's name is that of its form
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@dataclass
class _Recording:
    path: Path
    info: RunInfo
    signals: SignalPart
    parts: dict[str, Form] = field(default_factory=dict)
    running: bool = True

    def status(self) -> dict[str, Any]:
        """For status: does it go on, samples, bytes, why writing stopped."""
        every = [part.status for part in self.parts.values()]
        return {
            "running": self.running,
            "samples": self.signals.samples,
            "bytes": sum(status.bytes_written for status in every),
            "cause": "; ".join(status.cause for status in every if status.cause),
        }


class LiveRecordings:
    """Those of one run."""

    def __init__(self, folder: RunFolder, recorder: Recorder, headers: dict[str, dict[str, Any]]) -> None:
        """headers: of the streams that are recorded, by name."""
        self._folder, self._recorder, self._headers = folder, recorder, headers
        self._lock = threading.Lock()
        self._known: dict[str, _Recording] = {}

    def start(self, name: str, patterns: tuple[str, ...]) -> dict[str, Any]:
        """Begin one; RequestError where it cannot be."""
        with self._lock:
            name = name or self._free_name()
            chosen = self._chosen(patterns)
            self._check(name)
            try:
                made = self._made(name, chosen)
            except OSError as error:
                raise RequestError("refused", f"recording {name!r}: {error.filename}: {error.strerror}") from None
            if not self._recorder.attach(made.parts):
                shutil.rmtree(made.path, ignore_errors=True)
                raise RequestError("refused", "nothing is recorded: the run has not begun, or is over")
            self._known = {**self._known, name: made}
        return {"name": name, "folder": self._place(name), "signals": len(chosen)}

    def stop(self, name: str) -> dict[str, Any]:
        """End one."""
        with self._lock:
            made = self._known.get(name)
            if made is None or not made.running:
                going = [n for n, m in self._known.items() if m.running]
                raise RequestError(
                    "refused", f"no recording {name!r} is running; running: {', '.join(going) or 'none'}"
                )
            if not self._recorder.detach(made.parts):
                raise RequestError("refused", f"recording {name!r} ends with the run, which is over")
            self._end(made)
            signals = made.signals
        return {"name": name, "folder": self._place(name), "samples": signals.samples, "first_tick": signals.first,
                "last_tick": signals.last}  # fmt: skip

    def status(self) -> dict[str, Any]:
        """All of the run, by name."""
        return {name: made.status() for name, made in self._known.items()}

    def finish(self) -> None:
        """The run is over and its recorder closed: the last word about those that went on."""
        with self._lock:
            for made in self._known.values():
                if made.running:
                    self._end(made)

    # --- inside -----------------------------------------------------------------------------------------------------
    def _end(self, made: _Recording) -> None:
        signals = made.signals
        of = PartOf(os.path.relpath(self._folder.path, made.path), signals.first, signals.last)
        every = self._headers["signals"].get("every", 1)
        ticks = signals.last - signals.first + every if signals.samples else 0
        stats = RunStats(clock=ClockStats(ticks=ticks), recording={n: p.status for n, p in made.parts.items()})
        made.running = False
        made.info = replace(made.info, state="ended", ended=now_text(), part_of=of, stats=stats,
                            duration_s=ticks * (made.info.tick_s or 0.0))  # fmt: skip
        write_run_info(made.path, made.info)

    def _made(self, name: str, chosen: list[int]) -> _Recording:
        path = self._folder.path / FOLDER / name
        path.mkdir(parents=True)
        _linked(self._folder.path / "config", path / "config")
        info = replace(
            self._folder.info, state="running", started=now_text(), ended=None, duration_s=None, gates={},
            monitors=None, control=None, telemetry=None, started_from=None, scenario=None, stats=None,
            part_of=PartOf("../.."),
        )  # fmt: skip
        write_run_info(path, info)
        place = self._place(name)
        signals = SignalPart(f"{place}/signals", path / "signals", self._headers["signals"], chosen)
        parts: dict[str, Form] = {"signals": signals}
        if "bus" in self._headers:
            parts["bus"] = StreamPart(f"{place}/bus", path / "bus", self._headers["bus"])
        return _Recording(path, info, signals, parts)

    def _place(self, name: str) -> str:
        return f"{FOLDER}/{name}"

    def _free_name(self) -> str:
        return next(name for k in range(1, IN_A_RUN + 2) if (name := f"part-{k}") not in self._known)

    def _chosen(self, patterns: tuple[str, ...]) -> list[int]:
        names = self._headers["signals"]["names"]
        for pattern in patterns:
            if not fnmatch.filter(names, pattern):
                raise RequestError("refused", f"no recorded signal is called {pattern[:60]!r}; "
                                              'allowed: names as "engine.w", patterns as "C*.p"')  # fmt: skip
        return [k for k, n in enumerate(names) if not patterns or any(fnmatch.fnmatchcase(n, p) for p in patterns)]

    def _check(self, name: str) -> None:
        if not _NAME.fullmatch(name):
            raise RequestError("refused", f"name {name[:80]!r}; allowed: up to 64 letters, digits, '_', '-'")
        if name in self._known:
            raise RequestError("refused", f"there is a recording {name!r} in this run: nothing is overwritten")
        if sum(made.running for made in self._known.values()) >= AT_A_TIME or len(self._known) >= IN_A_RUN:
            raise RequestError("refused", f"allowed: {AT_A_TIME} recordings at a time, {IN_A_RUN} in a run")


def _linked(source: Path, target: Path) -> None:
    """The same files there, without their bytes where the file system can."""

    def link(a: str, b: str) -> None:
        try:
            os.link(a, b)
        except OSError:
            shutil.copyfile(a, b)

    shutil.copytree(source, target, copy_function=link)
