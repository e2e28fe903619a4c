"""Offline runs: a powertrain, its inputs over time, a duration; the result is a run directory like that of a rig.

    [scenario]
    name = "wot_4hp22"
    powertrain = "../powertrains/car_4hp22.toml"
    duration_s = 25.0
    [inputs]                        # key: input of the model, with unit; value: constant, points, or a source
    "engine.pedal" = [[0.0, 0.0], [0.5, 0.0], [0.7, 1.0]]
    "C4.p_bar" = 12.0
    "road.F_N" = { kind = "Sine", amplitude = 100.0, f = 0.5 }

Points [t_s, value] are joined by lines, the same time twice is a jump; sources are those of core/signals/ with their
Modelica parameters, times in s, values (height, amplitude, offset, k) in the unit of the key. The energy balance starts
at t = 0, the signals at the end of the first tick, as on a rig.
"""

from __future__ import annotations

import platform
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

import torqueloop
from torqueloop.core import signals as sources
from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components.files import load
from torqueloop.core.describe.errors import ConfigError
from torqueloop.core.describe.variants import OUTSIDE
from torqueloop.core.simulate.offline import Simulation
from torqueloop.core.simulate.results import Result
from torqueloop.hil.common.config_file import ConfigTable, FolderName, InFile
from torqueloop.hil.common.config_layers import load_config
from torqueloop.hil.common.locate import find
from torqueloop.hil.common.model_inputs import inputs_over_time
from torqueloop.hil.record.recording import ChunkWriter
from torqueloop.hil.record.run_data import ModeChange, signal_header, write_modes
from torqueloop.hil.record.run_folder import check_duration, machine, make_empty, now_text
from torqueloop.hil.record.signals import signal_dtype
from torqueloop.hil.results.clock import ClockStats
from torqueloop.hil.results.files import write_run_info
from torqueloop.hil.results.run import EnergyStats, RunInfo, RunStats, SolverStats
from torqueloop.hil.rig.resolve.monitors import driveline_spec
from torqueloop.hil.rig.schema.monitor_table import Monitors


class ScenarioTable(ConfigTable):
    """[scenario]: what is simulated, how long, in which steps."""

    #: name of the scenario, in reports
    name: FolderName
    #: driveline file, relative to the scenario file, or the bare name of an installed one
    powertrain: Annotated[str, InFile("powertrains")]
    #: other values than that file's: dotted key of it -> value, as "components.car.m_kg" = 1600.0
    set: dict[str, Any] = {}
    #: simulated time
    duration_s: Annotated[float, Field(gt=0, le=1e5)]
    #: distance of samples
    tick_s: Annotated[float, Field(ge=1e-5, le=0.1)] = 1e-3
    #: steps per tick
    substeps: Annotated[int, Field(ge=1, le=64)] = 1


class ScenarioConfig(ConfigTable):
    """One scenario file."""

    FOLDER: ClassVar[str] = "scenarios"

    scenario: ScenarioTable
    #: input of the model with its unit, as "C4.p_bar" -> a constant, points [[t_s, value], ...], or a source { kind =
    #: "Sine", amplitude = ..., f = ... }
    inputs: dict[str, Any] = {}
    #: name -> condition, as in a rig file
    gates: dict[str, str] = {}
    monitors: Monitors = Monitors()


def load_scenario(path: Path | str) -> tuple[ScenarioConfig, Any, dict[str, sources.Signal]]:
    """(config, compiled model, inputs by name in SI) of a scenario file; every mistake is a ConfigError."""
    config = load_config(path, ScenarioConfig)
    try:
        driveline = load(powertrain_of(path, config), config.scenario.set)
    except ConfigError as error:
        if error.file == OUTSIDE:
            error.file, error.table = str(path), f"scenario.set, {error.table or config.scenario.powertrain}"
        raise
    model = compile_driveline(driveline)
    return config, model, scenario_inputs(config, model, str(path))


def powertrain_of(path: Path | str, config: ScenarioConfig) -> Path:
    """The driveline file a scenario names."""
    try:
        return find(path, config.scenario.powertrain, "powertrains")
    except ConfigError as error:
        raise error.located(file=str(path), table="scenario", key="powertrain") from None


def scenario_inputs(config: ScenarioConfig, model: Any, file: str) -> dict[str, sources.Signal]:
    """Each key of [inputs] matched with an input of the model, its values converted to SI.

    Inputs that are derivatives of others (of an exact motion) come from the signal of these.
    """
    named = zip(model.input_names, model.input_units, strict=True)
    units = {name: unit for name, unit in named if name not in model.derived_inputs}
    return inputs_over_time(
        config.inputs, units, file, ranges=model.parts.input_ranges, optional=model.default_inputs
    )  # fmt: skip


def simulate(
    path: Path | str,
    out: Path | str,
    duration_s: float | None = None,
    kernel: str = "auto",
    progress: Callable[[float], None] | bool = False,
    csv: bool = False,
) -> Path:
    """Run a scenario and leave a run directory in `out`; the report is built from it."""
    path, out = Path(path), Path(out)
    config, model, inputs = load_scenario(path)
    table = config.scenario
    total = duration_s if duration_s is not None else table.duration_s
    check_duration(total, table.tick_s)
    simulation = Simulation(model, h=table.tick_s, kernel=kernel, substeps=table.substeps)
    make_empty(out)
    begun = now_text()
    start = time.perf_counter()
    result = simulation.run(total, inputs=inputs, progress=progress)
    took_s = time.perf_counter() - start
    if csv:
        result.write_csv(out / "signals.csv")
    _copy_config(path, powertrain_of(path, config), out / "config")
    _write_signals(out, result, table.tick_s)
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
        gates=dict(config.gates),
        monitors=driveline_spec(
            path, config.monitors, load(powertrain_of(path, config), table.set), model, table.duration_s
        ),  # fmt: skip
        command=list(sys.argv),
        version=torqueloop.__version__,
        python=platform.python_version(),
        machine=machine(),
        stats=stats,
    )
    write_run_info(out, info)
    return out


def _write_signals(out: Path, result: Result, tick_s: float) -> None:
    """The result as a recording, one record per tick; the initial state is left out as on a rig."""
    names = list(result.names)
    records = np.zeros(len(result) - 1, signal_dtype(len(names)))
    records["tick"] = np.arange(len(records))
    records["out"] = result.values[1:]
    writer = ChunkWriter(out / "signals", signal_header(names, [result.units[n] for n in names], tick_s))
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
