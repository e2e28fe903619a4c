"""The moment at which a step or check of a scenario failed: the signals it looked at, gear and pedal, around it."""

from __future__ import annotations

from torqueloop.hil.record.signals import Signals
from torqueloop.hil.report.analysis import runs_of, thin
from torqueloop.hil.report.scenario_checks import STEP, Verdict
from torqueloop.hil.report.style import colour, stacked, themed

#: shown before and behind it [s]
BEFORE_S, AFTER_S = 3.0, 1.5
#: panels at most, and signals that are always shown where they were recorded
PANELS = 5
_ALWAYS = ("driver.pedal",)
_GEAR = ".gear_actual"


def moment(signals: Signals | None, verdict: Verdict, name: str) -> str | None:
    """Inline SVG: a panel for each signal, a line at the moment, the steps shaded. None: there is no moment, or none
    of its signals."""
    if signals is None or not signals.n or verdict.t_s is None:
        return None
    gears = [n for n in signals.names if n.endswith(_GEAR)]
    wanted = dict.fromkeys([*verdict.signals, *gears, *_ALWAYS])
    shown = [n for n in wanted if n in signals.names][:PANELS]
    signals = signals.between(verdict.t_s - BEFORE_S, verdict.t_s + AFTER_S)
    t = signals.t
    if not shown or not len(t):
        return None
    with stacked(6.6, 1.0 + 1.25 * len(shown), [1.0] * len(shown)) as (figure, axes):
        for axis, signal in zip(axes, shown, strict=True):
            tt, y = thin(t, signals[signal])
            axis.plot(tt, y, color=colour("blue"))
            axis.axvline(verdict.t_s, color=colour("red"), linewidth=1.2)
            unit = signals.units.get(signal, "1")
            axis.set_ylabel(f"{signal}\n[{unit}]" if unit not in ("", "1") else signal, fontsize=7)
            if STEP in signals.names:
                for k, (a, b, _) in enumerate(runs_of(signals[STEP])):
                    role = "band_a" if k % 2 == 0 else "band_b"
                    axis.axvspan(t[a], t[b - 1], color=colour(role), linewidth=0, zorder=0)
        last = axes[-1]
        last.set_xlabel("time  [s]")
        last.set_xlim(float(t[0]), float(t[-1]))
        axes[0].set_title(f"{verdict.kind} {verdict.name}: {verdict.t_s:.3f} s")
        return themed(figure, name)
