"""The moment at which a step or check of a scenario failed: the signals it looked at, gear and pedal, around it."""

from __future__ import annotations

from torqueloop.hil.record.signals import Signals
from torqueloop.hil.report.plots import around
from torqueloop.hil.report.scenario_checks import STEP, Verdict
from torqueloop.hil.views.figure import Figure, Figures, Mark

#: shown before and behind it [s]
BEFORE_S, AFTER_S = 3.0, 1.5
#: panels at most, and signals that are always shown where they were recorded
PANELS = 5
_ALWAYS = ("driver.pedal", STEP)
_GEAR = ".gear_actual"


def moment(figures: Figures, signals: Signals, verdict: Verdict, name: str) -> Figure | None:
    """A panel for each signal, a mark at the moment. None: there is no moment, or none of its signals."""
    if not signals.n or verdict.t_s is None:
        return None
    gears = [n for n in signals.names if n.endswith(_GEAR)]
    wanted = dict.fromkeys([*verdict.signals, *gears, *_ALWAYS])
    shown = [n for n in wanted if n in signals.names][:PANELS]
    near = signals.between(verdict.t_s - BEFORE_S, verdict.t_s + AFTER_S)
    if not shown or not near.n:
        return None
    title = f"{verdict.kind} {verdict.name}: {verdict.t_s:.3f} s"
    return around(figures, name, [("", [n]) for n in shown], [Mark(verdict.t_s, "here")], near, title)
