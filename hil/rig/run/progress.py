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
#: signal, how it is shown
_SHOWN: tuple[tuple[str, Callable[[float], str]], ...] = (
    ("car.v", lambda x: f"{3.6 * x:5.1f} km/h"),
    ("engine.w", lambda x: f"{x * 30 / math.pi:5.0f} rpm"),
    ("TCU_Status.gear_actual", lambda x: f"gear {'N1234??RP'[int(x)] if 0 <= x < 9 else '?'}"),
)


class Progress:
    """Context manager; silent when switched off or when nobody looks (no terminal)."""

    def __init__(self, wanted: bool, plan: RigPlan, parts: RigParts, n_ticks: int) -> None:
        self._rig = parts.rig
        self._signals = [(plan.table.slot(n), show) for n, show in _SHOWN if n in plan.table]
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
        tick = self._rig.tick
        words = [f"{tick * self._tick_s:6.2f} s", *(show(self._rig.value(slot)) for slot, show in self._signals)]
        if self._rig.safe_latched:
            words.append("[bold red]safe state[/]")
        self._bar.update(self._task, completed=tick, text="  ".join(words))
        self._bar.refresh()
