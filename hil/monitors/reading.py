"""The monitors of the tick over a recording: the same kernel, fed with the recorded signals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.describe.classes import dataclass
from torqueloop.cython_kernels.tick import monitors as kernel
from torqueloop.hil.monitors.catalogue import ONLINE
from torqueloop.hil.monitors.engine import make_monitors, own_signals, read_signals
from torqueloop.hil.results.monitors import MonitorSpec

#: ticks that are read together
BLOCK = 1 << 15
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Finding:
    """What a monitor of the tick has found."""

    failed: bool
    #: ticks it could be looked at
    reached: int
    #: largest value
    seen: float
    #: first tick beyond the limit, and how many; -1: none
    first: int = -1
    ticks: int = 0
    worst: float = 0.0
    worst_tick: int = 0
    #: at the first failure: closed elements, a bit each; numbers of gears; position of the lever
    closed: int = 0
    gear: int = 0
    last: int = 0
    asked: float = kernel.UNKNOWN
    reported: float = kernel.UNKNOWN
    lever: float = 3.0


@dataclass(frozen=True)
class Reading:
    """All of them, and the gear engaged at each sample."""

    findings: dict[str, Finding]
    gears: Array


def read_recording(spec: MonitorSpec, column: Callable[[str], Array | None], ticks: Array,
                   tick_s: float) -> Reading | None:  # fmt: skip
    """column: a recorded signal by its name. None: there is no gearbox, or what the monitors need was not recorded."""
    columns = {name: column(name) for name in read_signals(spec)}
    needed = ["w_in", "w_out"]
    names = [spec.signals.get(fact, "") for fact in needed] + [f"{e.name}.capacity" for e in spec.gearbox.elements]
    if not columns or any(columns.get(name) is None for name in names):
        return None
    there = {name: values for name, values in columns.items() if values is not None}
    spec = _without(spec, there)
    slots = {name: 2 + k for k, name in enumerate(there)}
    first = 2 + len(slots)
    table = np.zeros(first + len(own_signals()))
    made = make_monitors(spec, slots.__getitem__, len(table), first, tick_s)
    made.arm(table)
    gears = np.zeros(len(ticks))
    for a in range(0, len(ticks), BLOCK):
        b = min(a + BLOCK, len(ticks))
        rows = np.stack([values[a:b] for values in there.values()], axis=1).ravel()
        part = np.zeros(b - a)
        made.read(table, np.ascontiguousarray(rows), np.ascontiguousarray(ticks[a:b], dtype=float), part)
        gears[a:b] = part
    return Reading({m.name: Finding(*e) for m, e in zip(ONLINE, made.evidence(table), strict=True)}, gears)


def _without(spec: MonitorSpec, there: dict[str, Array]) -> MonitorSpec:
    """The same without signals that were not recorded."""
    return replace(
        spec, signals={fact: name for fact, name in spec.signals.items() if name in there},
        pairs=[p for p in spec.pairs if p.reported in there and p.source in there],
    )  # fmt: skip
