"""Checks of every run that are worth knowing and change no exit status: what its steps did not resolve, a line for each
with the element and the remedy (core/simulate/remarks); and whether clients of its sockets lost their connections."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.simulate.remarks import of_counters, ringing
from torqueloop.hil.report.collect import Run
from torqueloop.hil.report.run_checks import Check
from torqueloop.hil.results.run import RunStats


def resolved(run: Run, stats: RunStats) -> Check:
    """Whether every step resolved what happened in it."""
    lines = list(stats.remarks)
    if run.info.clock != "offline":
        if stats.solver is not None:
            changes = ((change.step, change.element) for change in run.modes)
            lines += map(str, of_counters({}, asdict(stats.solver), changes))
        lines += map(str, ringing(_torques(run)))
    return Check("every step resolved", not lines, "; ".join(lines), counts=False)


def served(stats: RunStats) -> Check:
    """Whether clients of the control channel and of telemetry kept their connections (hil/link/front.py)."""
    lines = []
    for name, channel in (("control channel", stats.control), ("telemetry", stats.telemetry)):
        if channel is None:
            continue
        if channel.front_ends:
            lines.append(f"{name}: its process ended {channel.front_ends} times ({channel.front_last_end})")
        if channel.crowded:
            lines.append(f"{name}: too many clients were connected {channel.crowded} times, so all were disconnected")
        if channel.failure:
            lines.append(f"{name}: it stopped: {channel.failure}")
    return Check("control channel and telemetry served all the time", not lines, "; ".join(lines), counts=False)


def _torques(run: Run) -> dict[str, NDArray[np.float64]]:
    """Torques of elements with a slip, where every tick was recorded."""
    signals = run.signals
    if signals is None or int(signals.header.get("every", 1)) != 1:
        return {}
    elements = (name.removesuffix(".w_rel") for name in signals.names if name.endswith(".w_rel"))
    return {name: signals[f"{name}.tau"] for name in elements if f"{name}.tau" in signals.names}
