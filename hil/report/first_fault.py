"""The ticks around the first fault in the report: what happened, and the signals that tell most of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from torqueloop.hil.record.signals import Signals
from torqueloop.hil.report import plots
from torqueloop.hil.report.style import colour, stacked, themed

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
    told: str
    ticks: int = 0
    begin: int = 0
    end: int = 0
    latched: int = -1
    svg: str | None = None
    where: str | None = None
    error: str | None = None


def shown(report: Report) -> FirstFaultShown | None:
    """What the section shows; None for a run without a fault."""
    stats, signals = report.stats.first_fault, report.run.first_fault
    if stats is None and signals is None:
        return None
    made = FirstFaultShown(report.stats.safe_state.cause or str(_header(signals, "sentence")))
    if signals is not None and len(signals.tick):
        at = latched(signals)
        svg = draw(signals, at) if plots.available() else None
        begin, end = int(signals.tick[0]), int(signals.tick[-1])
        made = replace(made, ticks=len(signals.tick), begin=begin, end=end, latched=at, svg=svg)
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


def draw(signals: Signals, at: int) -> str | None:
    """One plot each for the cause, pressures and speeds, with the tick of the latching marked."""
    found = telling(signals)
    if not found:
        return None
    roles = ["blue", "orange", "green", "purple", "teal"]
    labels = {"cause": "the cause", "pressure": "pressure  [bar]", "speed": "speed  [1/min]"}
    t_at = (at + 1) * signals.tick_s
    with stacked(13.4, 0.8 + 1.7 * len(found), [1.0] * len(found)) as (figure, axes):
        for (kind, names), ax in zip(found.items(), axes, strict=True):
            for name, role in zip(names, roles, strict=False):
                values, unit = signals[name], signals.units[name]
                factor = plots.BAR if unit == "Pa" else plots.RPM if unit == _SPEED else 1.0
                shown = {"Pa": "bar", _SPEED: "1/min"}.get(unit, unit)
                label = name if kind != "cause" else f"{name} [{shown}]"
                ax.plot(signals.t, values * factor, color=colour(role), label=label)
            ax.axvline(t_at, color=colour("red"), linewidth=1.1)
            ax.set_ylabel(labels[kind])
            ax.legend(loc="upper left", ncols=MOST, columnspacing=1.0)
        axes[0].annotate(
            " latched", (t_at, 0.04), xycoords=("data", "axes fraction"), color=colour("red"), fontsize=8.5
        )
        axes[-1].set_xlabel("time  [s]")
        axes[-1].set_xlim(float(signals.t[0]), max(float(signals.t[-1]), float(signals.t[0]) + signals.tick_s))
        return themed(figure, "first_fault")


def fault_rows(report: Report) -> list[tuple[str, ...]]:
    """Injected faults for a table: what, kind, value, when, how often it acted and in which ticks its windows began."""
    rows = []
    for f in report.stats.faults:
        acted = f"{f.frames} frames" if f.frames is not None else f"{f.ticks or 0} ticks"
        if f.windows:
            begun = ", ".join(str(w.step) for w in f.windows[:SHOWN])
            more = f" and {len(f.windows) - SHOWN} more" if len(f.windows) > SHOWN else ""
            acted += f"; begun in tick {begun}{more}"
        cells = (f.target, f.kind, "" if f.value is None else f.value, f.when, acted)
        rows.append(tuple(str(cell) for cell in cells))
    return rows
