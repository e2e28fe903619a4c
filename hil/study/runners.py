"""What runs the lines of a study: a scenario of a driveline with everything that stays the same kept, or a rig."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
import warnings
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Protocol

from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components.files import load, variants
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.signals import Signal
from torqueloop.core.simulate.branches import Branches
from torqueloop.core.simulate.offline import Simulation
from torqueloop.hil.common.config_layers import read_layers
from torqueloop.hil.record.run_folder import check_duration
from torqueloop.hil.report.report import Report
from torqueloop.hil.rig.devices.device import RigPlan
from torqueloop.hil.rig.devices.registry import load_rig_config
from torqueloop.hil.rig.resolve.check_participants import check_participants
from torqueloop.hil.rig.resolve.plan import load_plan
from torqueloop.hil.rig.run.session import RunSpec, run_rig
from torqueloop.hil.scenario.offline import run_steps, scenario_inputs
from torqueloop.hil.scenario.run import run_scenario
from torqueloop.hil.scenario.scenario_tables import Scenario, ScenarioConfig, load_scenario
from torqueloop.hil.study.measures import Array, Signals
from torqueloop.hil.study.parameter_paths import Changes, Target

#: compiled drivelines a process keeps: runs that differ in inputs only, or in a few values of the driveline, share them
KEPT = 8


@dataclass(frozen=True)
class Done:
    """One run."""

    signals: Signals
    #: metrics of every run of its kind
    metrics: dict[str, Any]
    #: of the last state, as in reports
    hash: str
    #: simulating alone, without reading, compiling and measuring [s]
    run_s: float
    #: what its steps did not resolve, each with its remedy
    remarks: tuple[str, ...] = ()
    #: of a rig: the gates, checks and monitors that failed, each with its reason
    failures: tuple[str, ...] = ()


class Runner(Protocol):
    """Runs with other values, one after the other."""

    def check(self, changes: Changes) -> None:
        """Everything a run would refuse before its first tick."""
        ...

    def run(self, changes: Changes) -> Done: ...

    def digest(self) -> str:
        """Of all that is run: another one means other results."""
        ...


def runner(target: Target, duration_s: float | None) -> Runner:
    """What runs a target."""
    return (
        OfflineRunner(target.path, duration_s) if target.kind == "driveline scenario" else RigRunner(target, duration_s)
    )


class OfflineRunner:
    """A scenario of a driveline alone: file, driveline, compiled models and their start states are kept."""

    def __init__(self, path: Path, duration_s: float | None) -> None:
        self._path, self._duration_s = path, duration_s
        self._read = read_layers(path, ScenarioConfig)
        self._scenario = load_scenario(path, read=self._read)
        self._variants = variants(load(self._scenario.driveline()))
        self._made: OrderedDict[str, Branches] = OrderedDict()

    def _prepare(self, changes: Changes) -> tuple[Scenario, Branches, dict[str, Signal]]:
        scenario = self._scenario
        if changes.scenario or changes.parameters:
            scenario = load_scenario(self._path, changes.parameters, values=changes.scenario, read=self._read)
        table = scenario.config.scenario
        values = {**scenario.overrides, **changes.model}
        key = json.dumps([values, table.tick_s, table.substeps], default=str, sort_keys=True)
        latest = next(reversed(self._made), key)
        if latest != key:
            # the common part of the runs of one driveline at a time
            self._made[latest].forget()
        if key not in self._made:
            model = compile_driveline(self._variants.of(values) if values else self._variants.driveline)
            self._made[key] = Branches(Simulation(model, h=table.tick_s, substeps=table.substeps))
            if len(self._made) > KEPT:
                self._made.popitem(last=False)
        self._made.move_to_end(key)
        branches = self._made[key]
        return scenario, branches, scenario_inputs(scenario, branches.simulation.model)

    def check(self, changes: Changes) -> None:
        table = self._prepare(changes)[0].config.scenario
        check_duration(self._duration_s or table.duration_s, table.tick_s)

    def run(self, changes: Changes) -> Done:
        scenario, branches, inputs = self._prepare(changes)
        simulation, duration_s = branches.simulation, self._duration_s or scenario.config.scenario.duration_s
        begun = time.perf_counter()
        with warnings.catch_warnings():
            # the study reports the remarks of all its runs
            warnings.simplefilter("ignore", RuntimeWarning)
            if scenario.config.steps:
                branches.restart()
                result, _ = run_steps(scenario, simulation, duration_s, inputs)
            else:
                result = branches.run(duration_s, inputs)
        run_s = time.perf_counter() - begun
        energy = result.energy()
        metrics = {
            "energy_residual_rel": energy.relative_residual,
            "energy_turned_over_J": energy.turned_over,
            "mode_changes": len(result.modes),
        }
        return Done(result, metrics, f"{simulation.hash():016x}", run_s, tuple(map(str, result.remarks)))

    def digest(self) -> str:
        model = compile_driveline(self._variants.driveline)
        return _digest(self._scenario.config.model_dump_json(), model.digest())


class _Recorded:
    """Signals of a run directory, read before it is taken away."""

    def __init__(self, report: Report) -> None:
        signals = report.run.signals
        assert signals is not None, "a rig records"
        self.time: Array = signals.t
        self.units: Mapping[str, str] = signals.units
        self._signals = {name: signals[name] for name in signals}

    def __getitem__(self, name: str) -> Array:
        return self._signals[name]

    def __contains__(self, name: object) -> bool:
        return name in self._signals


class RigRunner:
    """A rig on the virtual clock, with a scenario or its own drive: a run directory each, read and taken away."""

    def __init__(self, target: Target, duration_s: float | None) -> None:
        self._target, self._duration_s = target, duration_s

    def _overrides(self, changes: Changes) -> dict[str, Any]:
        own = {"rig.duration_s": self._duration_s} if self._duration_s is not None else {}
        return {**own, "record.bus": False, "record.inputs": False, **changes.rig}

    def _plan(self, changes: Changes) -> RigPlan:
        if self._target.kind == "rig":
            return load_plan(self._target.path, self._overrides(changes))
        made = load_scenario(self._target.path, changes.parameters)
        return load_plan(made.of_rig, {**made.overrides, **self._overrides(changes)})

    def check(self, changes: Changes) -> None:
        check_participants(self._plan(changes))

    def run(self, changes: Changes) -> Done:
        folder = Path(mkdtemp(prefix="torqueloop_study_"))
        overrides = self._overrides(changes)
        try:
            begun = time.perf_counter()
            if self._target.kind == "rig":
                out = run_rig(self._target.path, RunSpec("virtual", out=folder / "run", overrides=overrides))
                report = out.report
            else:
                report = run_scenario(self._target.path, parameters=changes.parameters, out=folder / "run",
                                      overrides=overrides, html=False)  # fmt: skip
            took = time.perf_counter() - begun
            clock = report.stats.clock
            numbers = {k: v for k, v in report.metrics.items() if isinstance(v, (int, float))}
            numbers["passed"] = float(report.passed)
            remarks = tuple(check.text for check in report.checks if not check.counts and not check.passed)
            failures = tuple(f"{name}: {text}" for name, text in report.failures.items())
            return Done(_Recorded(report), numbers, report.stats.hash or "", clock.run_s or took, remarks, failures)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def digest(self) -> str:
        plan = self._plan(Changes())
        files: list[Path] = [self._target.path, Path(plan.path)]
        config = load_rig_config(plan.path)
        text = config.model_dump_json() + "".join(f.read_text(encoding="utf-8") for f in files)
        return _digest(text, plan.compiled.digest())


def _digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]
