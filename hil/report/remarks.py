"""What the steps of a run did not resolve, as a check of every run (core/simulate/remarks): a line for each, with the
element and the remedy. It is worth knowing and changes no exit status; a fallback has a monitor of its own."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.simulate.remarks import of_counters, ringing
from torqueloop.hil.report.checks import Check
from torqueloop.hil.report.collect import Run
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


def _torques(run: Run) -> dict[str, NDArray[np.float64]]:
    """Torques of elements with a slip, where every tick was recorded."""
    signals = run.signals
    if signals is None or int(signals.header.get("every", 1)) != 1:
        return {}
    elements = (name.removesuffix(".w_rel") for name in signals.names if name.endswith(".w_rel"))
    return {name: signals[f"{name}.tau"] for name in elements if f"{name}.tau" in signals.names}
