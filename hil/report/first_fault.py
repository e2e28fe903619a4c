"""The ticks around the first fault in the report: what happened, and the signals that show it best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.describe.classes import dataclass
from torqueloop.hil.record.signals import Signals
from torqueloop.hil.report import plots
from torqueloop.hil.report.pages import tick_at
from torqueloop.hil.views.figure import Figure, Figures, Mark

if TYPE_CHECKING:
    from torqueloop.hil.report.report import Report

#: lines in one plot
MOST = 5
#: windows of a fault that its row names
SHOWN = 8
#: units of the speeds that are drawn in 1/min
_SPEED = "rad/s"


@dataclass(frozen=True)
class FirstFaultShown:
    """Content of the section."""

    #: the cause in words
    cause: str
    ticks: int = 0
    begin: int = 0
    end: int = 0
    latched: int = -1
    figure: str | None = None
    where: str | None = None
    error: str | None = None


def shown(report: Report, figures: Figures) -> FirstFaultShown | None:
    """What the section shows, drawn; None for a run without a fault."""
    stats, signals = report.stats.first_fault, report.run.first_fault
    if stats is None and signals is None:
        return None
    made = FirstFaultShown(report.stats.safe_state.cause or str(_header(signals, "sentence")))
    if signals is not None and len(signals.tick):
        at = latched(signals)
        figure = figures.add(draw(signals, at, figures))
        begin, end = int(signals.tick[0]), int(signals.tick[-1])
        made = replace(made, ticks=len(signals.tick), begin=begin, end=end, latched=at, figure=figure)
    if stats is not None:
        made = replace(made, where=stats.path or "nowhere", error=stats.error)
    return made


def _header(signals: Signals | None, key: str) -> Any:
    return "" if signals is None else signals.header.get(key, "")


def latched(signals: Signals) -> int:
    """Tick in which the safe state was latched."""
    return int(signals.header.get("latched", signals.tick[-1] if len(signals.tick) else 0))


def telling(signals: Signals) -> dict[str, list[str]]:
    """Names to draw, by plot: the signals the cause is about, pressures, speeds; each those that move most."""
    about = str(signals.header.get("signal", ""))
    named = [n for n in signals.names if n == about] or [n for n in signals.names if n.startswith(f"{about}.")]
    found = {"cause": _most(signals, named) if about else []}
    found["pressure"] = _most(signals, [n for n in signals.names if n.endswith(".p") and signals.units[n] == "Pa"])
    shafts: list[str] = [n for n in ("engine.w", "turbine.w", "out.w") if n in signals.names]
    others = [n for n in signals.names if n.endswith(".w") and signals.units[n] == _SPEED]
    found["speed"] = shafts or _most(signals, others)
    return {key: names for key, names in found.items() if names}


def _most(signals: Signals, names: Sequence[str]) -> list[str]:
    """Those with the widest range, at most MOST; constants only where nothing moves."""
    span = {n: float(np.ptp(_finite(signals[n]))) if len(_finite(signals[n])) else 0.0 for n in names}
    moving = [n for n in names if span[n] > 0.0]
    return sorted(moving or list(names), key=lambda n: -span[n])[:MOST]


def _finite(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return values[np.isfinite(values)]


def draw(signals: Signals, at: int, figures: Figures) -> Figure | None:
    """One panel each for the cause, pressures and speeds, with the tick of the latching marked."""
    units = {"cause": "", "pressure": "bar", "speed": "1/min"}
    panels = [(units[kind], names) for kind, names in telling(signals).items()]
    return plots.around(figures, "first_fault", panels, [Mark((at + 1) * signals.tick_s, "latched")], signals)


def fault_rows(report: Report) -> list[tuple[Any, ...]]:
    """Injected faults for a table: what, kind, value, when, how often it acted and in which ticks its windows began."""
    rows = []
    for f in report.stats.faults:
        acted = f"{f.frames} frames" if f.frames is not None else f"{f.ticks or 0} ticks"
        if f.windows:
            begun = ", ".join(str(w.step) for w in f.windows[:SHOWN])
            more = f" and {len(f.windows) - SHOWN} more" if len(f.windows) > SHOWN else ""
            acted += f"; begun in tick {begun}{more}"
        target = tick_at(f.target, f.windows[0].step, report.run.info.tick_s) if f.windows else f.target
        value = "" if f.value is None else str(f.value)
        rows.append((target, str(f.kind), value, str(f.when), acted))
    return rows
