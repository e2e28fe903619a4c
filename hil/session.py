"""Life of a run: load -> check -> compile -> connect -> start companions -> arm -> run -> stop -> recorder closed ->
report.

Nothing is started before everything is checked; everything started is stopped, whatever happens. The loop has a thread
of its own
that holds no GIL; this module's thread looks after the links 20 times a second and never comes between the loop and
its deadline.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from torqueloop.core.errors import ConfigError
from torqueloop.cython_kernels.clock import now_ns, now_wall_ns
from torqueloop.hil.bus_log import bus_header
from torqueloop.hil.can_db import check_owners
from torqueloop.hil.gates import parse_gates
from torqueloop.hil.live_run import LiveRun, StartError
from torqueloop.hil.mode_log import ModeLog
from torqueloop.hil.real_clock import run_real_clock
from torqueloop.hil.recorder import Recorder
from torqueloop.hil.report.build import Report, write_report
from torqueloop.hil.rig_config import relative
from torqueloop.hil.rig_parts import build
from torqueloop.hil.rig_plan import RigPlan, load_plan
from torqueloop.hil.run_data import signal_header
from torqueloop.hil.run_folder import RunFolder
from torqueloop.hil.run_stats import Energy
from torqueloop.hil.tcu import load_tcu_database
from torqueloop.hil.tcu_config import TcuConfig, load_tcu_config
from torqueloop.hil.vehicle_config import load_vehicle_config
from torqueloop.hil.virtual_clock import run_virtual_clock
from torqueloop.hil.virtual_links import TcuStep, VehicleStep

__all__ = ["RunResult", "StartError", "run_rig"]


@dataclass
class RunResult:
    """What a run left behind."""

    out: Path
    stats: dict[str, Any]
    report: Report

    @property
    def exit_status(self) -> int:
        """0: all gates passed and the run ended properly; 1: not."""
        return self.report.exit_status


def run_rig(
    rig_path: str | Path,
    clock: Literal["real", "virtual"] = "real",
    duration: float | None = None,
    out: str | Path | None = None,
    gates: str | list[str] | Mapping[str, str] | None = None,
    progress: bool = True,
    peers: Literal["config", "none"] = "config",
    *,
    kernel: str = "auto",
    vehicle: VehicleStep | None = None,
    tcu: TcuStep | None = None,
    inject_busy: tuple[int, int, int] | None = None,
    html: bool = True,
) -> RunResult:
    """Run a rig file and write its run directory.

    clock: "real" (deadlines) or "virtual" (lockstep, as fast as it goes). duration: simulated s, default of the rig
    file.
    peers: "none" starts no companion processes, they are expected from outside. vehicle, tcu: models in this process
    instead of
    the configured ones (virtual clock only). inject_busy: (first tick, count, ns) of CPU burnt, to provoke overruns.
    """
    if clock not in ("real", "virtual"):
        raise ConfigError("unknown clock {value}", key="clock", value=clock, allowed="real, virtual")
    if duration is not None and not duration > 0:
        raise ConfigError("{key} = {value} s is not allowed", key="duration", value=duration, allowed="> 0")
    if clock == "real" and (vehicle is not None or tcu is not None):
        raise ConfigError(
            "models in the rig's process need the virtual clock", key="clock", value=clock, allowed="virtual"
        )
    plan = load_plan(rig_path)
    tcu_config = _check_companions(plan)
    own_gates = dict(plan.config.gates)
    parse_gates(own_gates)
    if gates:
        parse_gates(gates)
    folder = RunFolder(Path(rig_path), plan.config.rig.name, out)
    seconds = duration if duration is not None else plan.config.rig.duration_s
    folder.write(
        clock=clock,
        duration_s=seconds,
        tick_s=plan.config.clock.tick_s,
        powertrain=plan.driveline.name,
        gates=own_gates,
        model_digest=plan.compiled.digest(),
        kernel=kernel,
    )
    try:
        run = _prepare(plan, folder, seconds, kernel, clock == "real")
        if inject_busy is not None:
            run.parts.rig.inject_busy(*inject_busy)
        if clock == "real":
            state = run_real_clock(run, peers, progress)
        else:
            state = run_virtual_clock(run, peers, progress, vehicle, tcu, tcu_config)
    except BaseException as error:
        folder.finish("failed", error=f"{type(error).__name__}: {error}")
        raise
    stats = run.stats()
    run.modes.write(folder.path / "modes.csv")
    folder.finish(state, stats=stats, peers=run.peer_stats)
    return RunResult(folder.path, stats, write_report(folder.path, gates, html=html))


def _check_companions(plan: RigPlan) -> TcuConfig | None:
    """Read the files of the companions before anything is started, and see that nobody else sends our identifiers."""
    c = plan.config
    if c.vehicle is not None and c.vehicle.start is not None:
        body = load_vehicle_config(relative(plan.path, c.vehicle.start)).body
        mass = plan.vehicle["momentum"][0][2]
        if abs(body.mass_kg - mass) > 1e-6 * mass:
            raise ConfigError(
                f"the vehicle file has mass_kg = {body.mass_kg:g}, the powertrain's {c.vehicle.car!r} {mass:g} kg",
                file=str(plan.path),
                table="vehicle",
                key="start",
                value=c.vehicle.start,
                allowed="the same mass on both sides",
            )
    if c.tcu is None:
        return None
    config = load_tcu_config(relative(plan.path, c.tcu.start))
    assert plan.database is not None and c.can is not None
    check_owners([plan.database, load_tcu_database(config)])
    ours = (c.can.interface, c.can.channel, c.can.port)
    theirs = (config.can.interface, config.can.channel, config.can.port)
    if ours != theirs:
        raise ConfigError(
            "rig and TCU are on different buses: {value}",
            file=str(plan.path),
            table="can",
            key="channel",
            value=f"{ours} and {theirs}",
        )
    return config


def _prepare(plan: RigPlan, folder: RunFolder, seconds: float, kernel: str, real: bool) -> LiveRun:
    """Allocate everything and lay out the streams of the recorder."""
    parts = build(plan, seconds, kernel)
    parts.state.warm()
    c = plan.config
    recorder = Recorder(folder.path)
    header = signal_header(
        [n for n, _ in plan.recorded],
        [plan.table.units[s] for _, s in plan.recorded],
        c.clock.tick_s,
        every=c.record.every,
    )
    recorder.add_stream("signals", header, parts.samples)
    if c.record.inputs:
        recorder.add_stream("inputs", {"kind": "inputs", "version": 1, "tick_s": c.clock.tick_s}, parts.inputs)
    if c.record.bus and c.can is not None:
        channel = f"{c.can.interface} {c.can.channel}"
        recorder.add_stream("bus", bus_header(channel, now_wall_ns() - now_ns() if real else 0), parts.bus)
    modes = ModeLog(parts.modes, plan.compiled.friction_names)
    run = LiveRun(plan, parts, folder, recorder, Energy(plan, parts), modes, real)
    # the first message to the vehicle: the rig at its start
    start = dict(zip(plan.compiled.output_names, parts.model.outputs(parts.state), strict=True))
    v = c.vehicle
    if v is not None:
        brake = plan.table.initial.get(plan.table.slot(v.brake), 0.0)
        parts.vehicle_out.write([0.0, 0.0, 0.0, 0.0, start[f"{v.car}.v"], start[f"{v.car}.s"], brake], 0)
    return run
