"""Gates of a run are checked before anything is started."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from torqueloop.hil.report.collect import Run
from torqueloop.hil.report.metrics import OPEN, build_metrics, flatten
from torqueloop.hil.results.gates import Gate, parse_gates, unknown_name
from torqueloop.hil.results.run import RunInfo, StreamStats
from torqueloop.hil.rig.assemble.parts import RigParts
from torqueloop.hil.rig.devices.device import RigPlan
from torqueloop.hil.rig.run.run_stats import Energy, Links, run_stats


def check_gates(plan: RigPlan, parts: RigParts, gates: Iterable[Gate]) -> None:
    """ConfigError for a gate on a metric that a run of this rig cannot have: a slip must not cost the run."""
    stats = run_stats(plan, parts, Energy(plan, parts), Links())
    known = build_metrics(Run(Path(), RunInfo(plan.config.rig.name), None, [], ""), stats, [])
    # streams of the recorder are known by name, and are counted when they are there
    for stream in ("signals", "inputs", "bus"):
        known.update(flatten(StreamStats(), f"recording_{stream}"))
    for gate in gates:
        for name in gate.names:
            if name not in known and not name.startswith(OPEN):
                raise unknown_name(gate, name, known)


def own_gates(plan: RigPlan) -> list[Gate]:
    """The gates of the rig file."""
    return parse_gates(dict(plan.config.gates), str(plan.path))
