"""The progress line of a run: written by the session's thread, from values the loop publishes anyway."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from torqueloop.hil.rig.assemble.parts import RigParts
from torqueloop.hil.rig.resolve.plan import RigPlan

#: the line is drawn at most this often [s]
_DRAW_S = 0.1
#: signals in SI, how they are shown
_SHOWN: tuple[tuple[str, Callable[[float], str]], ...] = (
    ("car.v", lambda x: f"{3.6 * x:5.1f} km/h"),
    ("engine.w", lambda x: f"{x * 30 / math.pi:5.0f} rpm"),
)


class Progress:
    """Context manager; silent if it is switched off or there is no terminal."""

    def __init__(self, wanted: bool, plan: RigPlan, parts: RigParts, n_ticks: int) -> None:
        self._rig = parts.rig
        self._signals = [(plan.table.slot(n), show) for n, show in _SHOWN if n in plan.table]
        reported = plan.monitors.signals.get("reported", "")
        if reported and (found := plan.on_bus(plan.table.slot(reported))) is not None:
            word_of = found[1].word_of
            self._signals.append((plan.table.slot(reported), lambda x: f"gear {word_of(x) or '?'}"))
        self._tick_s, self._next = plan.config.clock.tick_s, 0.0
        self._bar: Bar | None = None
        if wanted and sys.stderr.isatty():
            self._bar = Bar(
                TextColumn("{task.description}", markup=False),
                BarColumn(30),
                TextColumn("{task.fields[text]}"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
                auto_refresh=False,
            )
            self._task = self._bar.add_task(plan.config.rig.name, total=n_ticks, text="")

    def __enter__(self) -> Progress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self) -> None:
        """Draw the line if it is time."""
        if self._bar is None or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _DRAW_S
        self._bar.update(self._task, completed=self._rig.tick, text=self.text())
        self._bar.refresh()

    def text(self) -> str:
        """Simulated time, speeds, the gear in the word of its database, and whether the safe state is latched."""
        words = [f"{self._rig.tick * self._tick_s:6.2f} s"]
        words += [show(self._rig.value(slot)) for slot, show in self._signals]
        return "  ".join([*words, "[bold red]safe state[/]"] if self._rig.safe_latched else words)
