"""Scenarios of a driveline alone: its inputs over time and steps; the result is a run directory like that of a rig.

Points [t_s, value] of an input are joined by lines, the same time twice is a jump; sources are those of core/signals/
with their Modelica parameters, times in s, values (height, amplitude, offset, k) in the unit of the key. The energy
balance starts at t = 0, the signals at the end of the first tick, as on a rig.
"""

from __future__ import annotations

import platform
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import torqueloop
from torqueloop.core import signals as sources
from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components.files import load
from torqueloop.core.describe.errors import ConfigError
from torqueloop.core.describe.variants import OUTSIDE
from torqueloop.core.simulate.offline import Simulation
from torqueloop.core.simulate.results import Result
from torqueloop.hil.common.model_inputs import inputs_over_time
from torqueloop.hil.record.recording import ChunkWriter
from torqueloop.hil.record.run_data import ModeChange, signal_header, write_modes
from torqueloop.hil.record.run_folder import check_duration, machine, make_empty, now_text
from torqueloop.hil.record.signals import signal_dtype
from torqueloop.hil.results.clock import ClockStats
from torqueloop.hil.results.files import write_run_info
from torqueloop.hil.results.run import EnergyStats, RunInfo, RunStats, SolverStats
from torqueloop.hil.rig.resolve.monitors import driveline_spec
from torqueloop.hil.scenario.offline_steps import OfflineSteps
from torqueloop.hil.scenario.scenario_tables import Scenario, load_scenario


def compiled(scenario: Scenario) -> tuple[Any, dict[str, sources.Signal]]:
    """(compiled model, inputs by name in SI) of a scenario of a driveline; every mistake is a ConfigError."""
    file = str(scenario.path)
    try:
        model = compile_driveline(load(scenario.driveline(), scenario.overrides))
    except ConfigError as error:
        if error.file == OUTSIDE:
            error.file, error.table = file, f"set, {error.table or scenario.config.scenario.powertrain}"
        raise
    return model, scenario_inputs(scenario, model)


def scenario_inputs(scenario: Scenario, model: Any) -> dict[str, sources.Signal]:
    """Each key of [inputs] matched with an input of the model, its values converted to SI.

    Inputs that are derivatives of others (of an exact motion) come from the signal of these.
    """
    named = zip(model.input_names, model.input_units, strict=True)
    units = {name: unit for name, unit in named if name not in model.derived_inputs}
    return inputs_over_time(
        scenario.config.inputs, units, str(scenario.path), ranges=model.parts.input_ranges,
        optional=model.default_inputs,
    )  # fmt: skip


def simulate(
    scenario: Scenario | Path | str,
    out: Path | str,
    duration_s: float | None = None,
    kernel: str = "auto",
    progress: Callable[[float], None] | bool = False,
    csv: bool = False,
) -> Path:
    """Run a scenario of a driveline and leave a run directory in `out`; the report is built from it."""
    out = Path(out)
    if not isinstance(scenario, Scenario):
        scenario = load_scenario(scenario)
    path = scenario.path
    model, inputs = compiled(scenario)
    table = scenario.config.scenario
    total = duration_s if duration_s is not None else table.duration_s
    check_duration(total, table.tick_s)
    simulation = Simulation(model, h=table.tick_s, kernel=kernel, substeps=table.substeps)
    make_empty(out)
    begun = now_text()
    start = time.perf_counter()
    result, steps = run_steps(scenario, simulation, total, inputs, progress)
    took_s = time.perf_counter() - start
    if csv:
        result.write_csv(out / "signals.csv")
    _copy_config(path, scenario.driveline(), out / "config")
    _write_signals(out, result, table.tick_s, steps)
    columns = dict(zip(result.names, result.values.T, strict=True))
    np.savez_compressed(out / "signals.npz", time=result.time, **columns)
    write_modes(out / "modes.csv", [ModeChange(m.step, m.time_s, m.element, m.mode) for m in result.modes])
    energy = result.energy()
    stats = RunStats(
        ClockStats(len(result) - 1, run_s=took_s, real_time_factor=total / took_s),
        solver=SolverStats(**result.counters),
        remarks=[str(remark) for remark in result.remarks],
        energy=EnergyStats(dict(energy.work), dict(energy.heat), dict(energy.stored)),
        kernel=simulation.kernel_name,
        hash=f"{simulation.hash():016x}",
    )
    info = RunInfo(
        table.name,
        state="ended",
        started=begun,
        ended=now_text(),
        clock="offline",
        duration_s=total,
        tick_s=table.tick_s,
        substeps=table.substeps,
        powertrain=model.name,
        kernel=kernel,
        model_digest=model.digest(),
        gates=dict(scenario.config.gates),
        monitors=driveline_spec(
            path, scenario.config.monitors, load(scenario.driveline(), scenario.overrides), model, table.duration_s
        ),  # fmt: skip
        scenario=scenario.info if scenario.info.steps or scenario.info.checks else None,
        command=list(sys.argv),
        version=torqueloop.__version__,
        python=platform.python_version(),
        machine=machine(),
        stats=stats,
    )
    write_run_info(out, info)
    return out


def run_steps(
    scenario: Scenario,
    simulation: Simulation,
    duration_s: float,
    inputs: Mapping[str, sources.Signal],
    progress: Callable[[float], None] | bool = False,
) -> tuple[Result, OfflineSteps | None]:
    """Simulate until the steps of the scenario are over, `duration_s` at most; the steps, if there are any."""
    if not scenario.config.steps:
        return simulation.run(duration_s, inputs=inputs, progress=progress), None
    steps = OfflineSteps(scenario, simulation, inputs)
    for name, signal in inputs.items():
        simulation.set_input(name, signal)
    steps.tick()
    return simulation.run(duration_s, progress=progress, each=steps.tick), steps


def _write_signals(out: Path, result: Result, tick_s: float, steps: OfflineSteps | None) -> None:
    """The result as a recording, one record per tick; the initial state is left out as on a rig."""
    names, units, values = list(result.names), [result.units[n] for n in result.names], result.values[1:]
    if steps is not None:
        names, units = names + steps.names, units + steps.units
        values = np.hstack([values, steps.rows(len(values))])
    records = np.zeros(len(values), signal_dtype(len(names)))
    records["tick"] = np.arange(len(records))
    records["out"] = values
    writer = ChunkWriter(out / "signals", signal_header(names, units, tick_s))
    step = max(1, (1 << 20) // records.itemsize)
    for k in range(0, len(records), step):
        writer.write(records[k : k + step].tobytes())
    writer.close()


def _copy_config(scenario: Path, powertrain: Path, target: Path) -> None:
    """All files the run was made of."""
    target.mkdir(parents=True, exist_ok=True)
    shutil.copy(scenario, target / scenario.name)
    driveline = load(powertrain)
    files = {Path(f).resolve() for f in [driveline.file, *driveline.origin.values()] if f}
    for file in sorted(files):
        shutil.copy(file, target / file.name)
