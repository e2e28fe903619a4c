"""Life of a run: load -> check -> compile -> connect -> start participants -> arm -> run -> stop -> report.

Nothing is started before everything is checked; everything started is stopped, whatever happens. The loop has a thread
of its own that holds no GIL; this module's thread looks after the links 20 times a second and never comes between the
loop and its deadline.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError, TorqueloopError
from torqueloop.cython_kernels.clock.clock import now_ns, now_wall_ns
from torqueloop.hil.common.config_layers import blamed_on, overrides_files, relative_overrides
from torqueloop.hil.ecu.control_unit import ControlUnit
from torqueloop.hil.realtime.limits import check_limits
from torqueloop.hil.record.bus_log import bus_header, count_frames
from torqueloop.hil.record.bus_stream import BusStreamed
from torqueloop.hil.record.mode_log import ModeLog
from torqueloop.hil.record.recorder import Recorder
from torqueloop.hil.record.run_data import COLUMNS, signal_header
from torqueloop.hil.record.run_folder import RunFolder, check_duration
from torqueloop.hil.record.signals import signal_encoder
from torqueloop.hil.record.streamed import Streamed
from torqueloop.hil.report.report import Report
from torqueloop.hil.report.write import UnwrittenReport, write_report
from torqueloop.hil.results.files import plain
from torqueloop.hil.results.gates import parse_gates
from torqueloop.hil.results.monitors import MonitorSpec
from torqueloop.hil.results.run import RunStats, StartedFrom
from torqueloop.hil.results.scenario import ScenarioInfo
from torqueloop.hil.rig.assemble.parts import RigParts, build
from torqueloop.hil.rig.assemble.virtual_links import VehicleStep
from torqueloop.hil.rig.devices.registry import rig_model
from torqueloop.hil.rig.online.rig_control import RigControl
from torqueloop.hil.rig.resolve.check_participants import check_participants, check_real_clock
from torqueloop.hil.rig.resolve.plan import RigPlan, load_plan
from torqueloop.hil.rig.run.channels import control_channel, live_page, telemetry_channel
from torqueloop.hil.rig.run.first_fault import FirstFaultWriter
from torqueloop.hil.rig.run.known_gates import check_gates, own_gates
from torqueloop.hil.rig.run.live_run import LiveRun, Pilot, StartError
from torqueloop.hil.rig.run.real_clock import run_real_clock
from torqueloop.hil.rig.run.recordings import LiveRecordings
from torqueloop.hil.rig.run.replay import INPUT_VERSION
from torqueloop.hil.rig.run.run_stats import Energy
from torqueloop.hil.rig.run.virtual_clock import run_virtual_clock

__all__ = ["RunError", "RunResult", "RunSpec", "StartError", "run_rig"]


class RunError(TorqueloopError):
    """The run took place, but what it leaves behind is not complete."""


@dataclass
class RunResult:
    """What a run left behind."""

    out: Path
    #: "ended", "interrupted" or "hung"
    state: str
    stats: RunStats
    report: Report

    @property
    def exit_status(self) -> int:
        """0: all gates passed and the run ended properly; 1: not."""
        return self.report.exit_status


@dataclass(frozen=True)
class RunSpec:
    """How a rig is run: what is not in its file. A run shows nothing and writes no page unless it is asked to."""

    #: "real" (deadlines) or "virtual" (lockstep, as fast as possible)
    clock: Literal["real", "virtual"] = "real"
    #: simulated time [s]; default: that of the rig file. From a checkpoint on it counts from there
    duration_s: float | None = None
    #: run directory; default: runs/TIME-NAME
    out: str | Path | None = None
    #: conditions on the report, besides those of the rig file
    gates: str | list[str] | Mapping[str, str] | None = None
    #: a line that shows how far the run is
    progress: bool = False
    #: write report.html
    html: bool = False
    #: "none" starts no participant processes: they are expected from outside
    participants: Literal["config", "none"] = "config"
    #: "auto", "generic" or the name of a precompiled kernel
    kernel: str = "auto"
    #: models in this process instead of the configured ones (virtual clock only); control units by name
    vehicle: VehicleStep | None = None
    ecus: Mapping[str, ControlUnit] | None = None
    #: endpoints of a control channel (docs/control.md) and of a PUB socket (docs/telemetry.md); default: the rig file's
    control: str | None = None
    telemetry: str | None = None
    #: checkpoint to begin at
    start_from: str | Path | None = None
    #: dotted key -> value instead of the rig file's
    overrides: Mapping[str, Any] | None = None
    #: what the steps among the overrides belong to, kept for the report
    scenario: ScenarioInfo | None = None
    #: real clock: the rig makes no tick until a client of its control channel arms it; its outputs have safe values
    disarmed: bool = False
    #: (first tick, count, ns) of CPU burnt, to provoke overruns
    inject_busy: tuple[int, int, int] | None = None
    #: goes along with the run in this process, and holds it between ticks of the virtual clock
    pilot: Pilot | None = None
    #: open the live page in the browser (docs/watch.md). The virtual clock then goes no faster than one on the wall;
    #: control channel and telemetry take a free port where the rig file has none
    watch: bool = False


def run_rig(rig_path: str | Path, spec: RunSpec) -> RunResult:
    """Run a rig file and write its run directory."""
    clock, kernel, overrides, pilot = spec.clock, spec.kernel, spec.overrides, spec.pilot
    if clock not in ("real", "virtual"):
        raise ConfigError("unknown clock {value}", key="clock", value=clock, allowed="real, virtual")
    check_limits()
    if clock == "real" and (spec.vehicle is not None or spec.ecus):
        raise ConfigError(
            "models in the rig's process need the virtual clock", key="clock", value=clock, allowed="virtual"
        )
    plan = load_plan(rig_path, overrides)
    _can_be_armed(plan, spec)
    kept = relative_overrides(rig_path, rig_model(), overrides)
    with blamed_on(overrides, plan.path):
        check_participants(plan)
        if clock == "real" and spec.participants == "config":
            check_real_clock(plan)
    asked = own_gates(plan) + (parse_gates(spec.gates, "command line") if spec.gates else [])
    seconds = spec.duration_s if spec.duration_s is not None else plan.config.rig.duration_s
    check_duration(seconds, plan.config.clock.tick_s)
    parts = build(plan, seconds, kernel)
    check_gates(plan, parts, asked)
    folder = RunFolder(Path(rig_path), plan.config.rig.name, spec.out, overrides_files(rig_path, rig_model(), kept))
    folder.write(
        overrides=kept,
        scenario=spec.scenario,
        clock=clock,
        duration_s=seconds,
        tick_s=plan.config.clock.tick_s,
        powertrain=plan.driveline.name,
        gates=dict(plan.config.gates),
        monitors=_held_to(plan, spec.scenario, kept),
        model_digest=plan.compiled.digest(),
        kernel=kernel,
    )
    run = None
    try:
        run = _prepare(plan, parts, folder, clock == "real", kernel)
        if spec.start_from is not None:
            tick = run.control.checkpoints.start_from(Path(spec.start_from))
            folder.write(started_from=StartedFrom(str(spec.start_from), tick))
        if spec.inject_busy is not None:
            run.parts.rig.inject_busy(*spec.inject_busy)
        if pilot is not None:
            pilot.attached(run)
        with (
            telemetry_channel(run, spec.telemetry, spec.progress, spec.watch),
            control_channel(run, spec.control, spec.progress, spec.watch),
            live_page(run, spec.watch),
        ):
            if clock == "real":
                state = run_real_clock(run, spec.participants, spec.progress, spec.disarmed)
            else:
                ecus, paced = spec.ecus or {}, spec.watch
                state = run_virtual_clock(run, spec.participants, spec.progress, spec.vehicle, ecus, pilot, paced)
    except BaseException as error:
        failed = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
        armed = folder.info.state == "running"
        with suppress(OSError):  # the cause counts, not that the disk is full as well
            if run is not None:
                run.recorder.discard()
                run.recordings.finish()
            folder.finish(failed, error=f"{type(error).__name__}: {error}", armed=armed)
        raise
    if moved := folder.settle():
        run.degrade(moved)
    # what was written last may have been refused, too
    run.look_at_recorder()
    run.first_fault.finish()
    stats = run.stats()
    try:
        run.recordings.finish()
        run.modes.write(folder.path / "modes.csv")
        folder.finish(state, stats=stats, realtime=run.realtime())
        report = write_report(folder.path, spec.gates, html=spec.html)
    except (OSError, UnwrittenReport) as error:
        cause = error if isinstance(error, OSError) else error.cause
        raise RunError(
            f"{cause.filename or folder.path}: {cause.strerror}; the run is over ({state}, {stats.clock.ticks} ticks), "
            f"what was recorded is in {folder.path} and can be read with `torqueloop report`"
        ) from None
    return RunResult(folder.path, state, stats, report)


def _can_be_armed(plan: RigPlan, spec: RunSpec) -> None:
    """ConfigError for a rig that is to wait although nobody could arm it."""
    if spec.disarmed and spec.clock != "real":
        problem = "a run that begins disarmed needs the real clock"
        raise ConfigError(problem, key="clock", value=spec.clock, allowed="real")
    if spec.disarmed and not (spec.control or plan.config.control or spec.watch):
        problem = "a run that begins disarmed is armed over its control channel, and this one has none"
        allowed = "[control], --control or --watch"
        raise ConfigError(problem, file=str(plan.path), table="control", key="endpoint", value=None, allowed=allowed)


def _held_to(plan: RigPlan, scenario: ScenarioInfo | None, overrides: Mapping[str, Any]) -> MonitorSpec:
    """The monitors of a run. A drive that is not the rig file's comes to whatever gear it comes to."""
    own_drive = scenario is None and not any(key.partition(".")[0] in ("driver", "steps") for key in overrides)
    return plan.monitors if own_drive else replace(plan.monitors, reaches=0)


def _prepare(plan: RigPlan, parts: RigParts, folder: RunFolder, real: bool, kernel: str) -> LiveRun:
    """Lay out the streams of the recorder and the first message to the vehicle."""
    if real:
        # on the virtual clock nothing is late that builds a lock pattern when it comes
        parts.state.warm()
    c = plan.config
    recorder = Recorder(folder.path)
    header = signal_header(
        [n for n, _ in plan.recorded],
        [plan.table.units[s] for _, s in plan.recorded],
        c.clock.tick_s,
        COLUMNS,
        every=c.record.every,
    )
    started = datetime.fromisoformat(folder.info.started)
    # simulated time 0 is when the run was started
    epoch = now_wall_ns() - now_ns() if real else round(started.timestamp() * 1e6) * 1000
    forms = [Streamed(form, folder.path, header["names"], header["units"], c.clock.tick_s, started, epoch)
             for form in dict.fromkeys(c.record.formats)]  # fmt: skip
    recorder.add_stream("signals", header, parts.samples, encode=signal_encoder(len(plan.recorded)), forms=forms)
    if c.record.inputs:
        inputs = {"kind": "inputs", "version": INPUT_VERSION, "tick_s": c.clock.tick_s}
        recorder.add_stream("inputs", inputs, parts.inputs)
    headers = {"signals": header}
    if c.record.bus and plan.buses:
        channels = [{"name": bus.name, "channel": bus.place, "fd": bus.database.has_fd} for bus in plan.buses]
        headers["bus"] = bus_header(plan.buses[0].place, epoch, buses=channels)
        names = [str(channel["name"]) for channel in channels]
        frames = [BusStreamed(form, folder.path, names if len(names) > 1 else [plan.buses[0].place], started, epoch)
                  for form in dict.fromkeys(c.record.bus_formats)]  # fmt: skip
        recorder.add_stream("bus", headers["bus"], parts.bus_log, forms=frames, count=count_frames)
    modes = ModeLog(parts.modes, plan.compiled.friction_names)
    faults = FirstFaultWriter(plan, parts, folder.path)
    control = RigControl(plan, parts, folder.path, kernel, real)
    control.recordings = recordings = LiveRecordings(folder, recorder, headers)
    run = LiveRun(plan, parts, folder, recorder, Energy(plan, parts), modes, real, faults, control, recordings)
    control.numbers = lambda: plain(run.stats(whole=False))
    # the first message to the vehicle: the rig at its start
    start = dict(zip(plan.compiled.output_names, parts.model.outputs(parts.state), strict=True))
    v = c.vehicle
    if v is not None:
        brake = plan.table.initial.get(plan.table.slot(v.brake), 0.0)
        moments = [start[f"{name}.{n}"] for name in parts.carriers.names for n in parts.carriers.moment_of(name)]
        parts.vehicle_out.write(
            [0.0, 0.0, 0.0, 0.0, start[f"{v.car}.v"], start[f"{v.car}.s"], brake, *moments], 0
        )  # fmt: skip
    return run
