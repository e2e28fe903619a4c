"""What is assumed in a configuration and all files it uses, what is wrong there, and how much each number matters.

torqueloop list --assumed desk_4hp22            every assumed number with its reason and range
torqueloop list --assumed desk_4hp22 --weigh    and what 10 % more of it changes
torqueloop check --physics desk_4hp22           ranges, derivations and physics (core/analyse/physics.py)
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from torqueloop.core.analyse.physics import Finding, findings
from torqueloop.core.components.files import load
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import ConfigError
from torqueloop.core.describe.provenance import Known, Statement, statements
from torqueloop.hil.cli.file_check import kind_of
from torqueloop.hil.record.run_folder import input_files
from torqueloop.hil.report.assumed import WEIGHTS
from torqueloop.hil.results.files import read_run_info
from torqueloop.hil.rig.resolve.plan import load_plan

#: what a weighed number is multiplied with
MORE = 1.1
#: metric -> its word in the table
METRICS = {"t_0_100_kmh_s": "0-100 km/h", "shift_quality_time_worst_s": "longest shift"}


@dataclass(frozen=True)
class Weight:
    """What 10 % more of one number changes: metric -> relative change; empty: no run with that number ended."""

    statement: Statement
    changes: dict[str, float]

    @property
    def most(self) -> float:
        return max((abs(v) for v in self.changes.values()), default=0.0)


def facts(path: Path) -> list[Statement]:
    """Every number with a source in the file and the files it uses."""
    return [s for file, _ in input_files(path) if file.suffix == ".toml" for s in statements(file)]


def assumed(path: Path) -> list[Statement]:
    """The assumed ones of them."""
    return [s for s in facts(path) if s.known is Known.ASSUMED]


def driveline_in(path: Path) -> Driveline | None:
    """The driveline that a gearbox, powertrain or rig file describes; None for other kinds."""
    kind = kind_of(path)
    if kind in ("gearbox", "powertrain"):
        return load(path)
    return load_plan(path).driveline if kind == "rig" else None


def physics(path: Path) -> tuple[int, list[Finding], list[Statement]]:
    """(checks made, those of them that do not hold, numbers outside of their range or unlike their derivation)."""
    driveline = driveline_in(path)
    found = [] if driveline is None else findings(driveline)
    said = facts(path)
    made = len(found) + sum(s.low is not None or s.computed is not None for s in said)
    return made, [f for f in found if not f.ok], [s for s in said if s.problem]


def weigh(rig: Path, progress: Callable[[int, int], None] = lambda done, of: None) -> list[Weight]:
    """Runs the rig in virtual time with each assumed number of its driveline 10 % larger; the weightiest first."""
    if kind_of(rig) != "rig":
        raise ConfigError("only the numbers of a rig can be weighed", file=str(rig), allowed="a rig file")
    said = [s for s in assumed(rig) if s.table.startswith("components.") and s.value != 0.0]
    jobs = [(str(rig), {}), *((str(rig), _changed(rig, s)) for s in said)]
    measured = []
    with ProcessPoolExecutor() as pool:
        for result in pool.map(_measure, jobs):
            measured.append(result)
            progress(len(measured), len(jobs))
    base = measured[0]
    weights = [
        Weight(s, {m: (run[m] - base[m]) / base[m] for m in METRICS if run.get(m) and base.get(m)})
        for s, run in zip(said, measured[1:], strict=True)
    ]
    return sorted(weights, key=lambda w: -w.most)


def weigh_run(run_dir: Path) -> None:
    """Leave the weights of a run's rig in its directory, for the report's page."""
    info = read_run_info(run_dir)
    if info is None or info.rig_file is None:
        raise ConfigError("{key}: only the numbers of a rig can be weighed", key="weigh", value=str(run_dir))
    weights = {f"{w.statement.table}.{w.statement.key}": w.changes for w in weigh(run_dir / info.rig_file)}
    (run_dir / WEIGHTS).write_text(json.dumps(weights, indent=1), encoding="utf-8")


def _changed(rig: Path, number: Statement) -> dict[str, Any]:
    """Overrides of the rig file for 10 % more of a number; the vehicle has the car's mass, too."""
    value = number.value * MORE
    vehicle = load_plan(rig).config.vehicle
    overrides: dict[str, Any] = {"plant.set": {f"{number.table}.{number.key}": value}}
    mass = None if vehicle is None or vehicle.kind != "road" else f"components.{vehicle.car}.m_kg"
    if f"{number.table}.{number.key}" == mass:
        overrides["vehicle.options.set"] = {"body.mass_kg": value}
    return overrides


def _measure(job: tuple[str, dict[str, Any]]) -> dict[str, float]:
    """Metrics of one run; none where the number is refused (an integer, a bound)."""
    from torqueloop.hil.runs.recorded_run import run

    rig, changed = job
    with tempfile.TemporaryDirectory() as folder:
        try:
            made = run(rig, out=Path(folder) / "run", overrides=changed)
        except ConfigError:
            return {}
        return {m: float(v) for m in METRICS if isinstance(v := made.metrics.get(m), (int, float))}
