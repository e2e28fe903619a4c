"""The command line, `torqueloop COMMAND`.

Exit status 0: fine, 1: a gate or a comparison failed, 2: the input is wrong or nothing could start, 3: inconclusive,
128 + n: ended by signal n in order (130: Ctrl-C, 143: SIGTERM, 129: terminal closed).
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from torqueloop.hil.cli.animate import animate
from torqueloop.hil.cli.bus import bus_app
from torqueloop.hil.cli.check_command import check_files
from torqueloop.hil.cli.common import (
    FAILED,
    INTERRUPTED,
    OK,
    JsonOption,
    Signalled,
    after_the_run,
    command,
    error_console,
    names_of,
    out_console,
    print_json,
    steady_streams,
)
from torqueloop.hil.cli.control import control_app, keys
from torqueloop.hil.cli.export import export
from torqueloop.hil.cli.judge import (
    AgainstOption,
    GateOption,
    HtmlOption,
    against,
    gates_of,
    report,
    say_failures,
    show_report,
)
from torqueloop.hil.cli.listing import list_installed
from torqueloop.hil.cli.manual import docs
from torqueloop.hil.cli.new import new_app
from torqueloop.hil.cli.participants import tcu, vehicle
from torqueloop.hil.cli.runs import compare, runs
from torqueloop.hil.cli.scenarios import scenario
from torqueloop.hil.cli.schema import schema
from torqueloop.hil.cli.setup_host import setup_host
from torqueloop.hil.cli.steps import compile_step
from torqueloop.hil.cli.sweep import sweep
from torqueloop.hil.cli.watch import watch
from torqueloop.hil.cli.wire import wire
from torqueloop.hil.common.lean_imports import put_off_asammdf
from torqueloop.hil.common.locate import default_folder, locate

app: typer.Typer = typer.Typer(
    name="torqueloop",
    help="Simulate an automatic gearbox, its engine and its car in real time for a transmission control unit.\n\n"
    "`torqueloop run` without arguments drives a car with a ZF 4HP22 through its four gears. The gearbox runs in a "
    "loop with deadlines, a soft control unit commands its clutches over CAN, and a vehicle model exchanges force "
    "and speed over ZeroMQ. A report says whether the loop kept its deadlines.",
    epilog="Exit status: 0 all gates passed, 1 a gate or a comparison failed, 2 the input is wrong or nothing could "
    "start, 3 a check failed and the machine did not run the rig for a time that explains it, "
    "130 interrupted (143 by SIGTERM, 129 by SIGHUP).",
    rich_markup_mode="markdown",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)


# --- groups of commands, as the help shows them
RUN, JUDGE, MODEL, BUS, MACHINE = "Run", "Judge", "Model", "Bus and participants", "Machine"


class ClockChoice(StrEnum):
    """--clock"""

    real = "real"
    virtual = "virtual"


# --- arguments used more than once ----------------------------------------------------------------------------------

OutOption = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="Directory of the run; default: runs/TIME-NAME.")
]
DurationOption = Annotated[
    float | None, typer.Option("--duration", metavar="S", help="Simulated seconds; default: the file's.")
]
PlotOption = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="Draw stick and lever diagrams (png, svg, pdf).")
]
RunDir = Annotated[Path, typer.Argument(metavar="DIR", help="Directory of a run.")]


@contextmanager
def _ended_like_ctrl_c() -> Iterator[list[int]]:
    """SIGTERM and a closed terminal end a run as Ctrl-C does: recording closed, participants gone. Yields the signals
    that came."""
    from torqueloop.hil.rig.run.interrupts import ENDING

    came: list[int] = []

    def interrupt(number: int, _: object) -> None:
        came.append(number)
        raise Signalled(number)

    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.signal(number, interrupt) for number in ENDING}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# --- commands -------------------------------------------------------------------------------------------------------


@app.command(rich_help_panel=RUN)
@command
def run(
    rig: Annotated[
        str, typer.Argument(help="Rig file, or the bare name of an installed one.", autocompletion=names_of("rigs"))
    ] = "desk_4hp22",
    clock: Annotated[
        ClockChoice, typer.Option(help="real: with deadlines; virtual: lockstep, deterministic, as fast as possible.")
    ] = ClockChoice.real,
    duration: DurationOption = None,
    out: OutOption = None,
    gate: GateOption = None,
    gate_against: AgainstOption = None,
    participants: Annotated[
        bool,
        typer.Option(
            "--participants/--no-participants", help="Start the control unit and vehicle processes of the rig file."
        ),
    ] = True,
    peers: Annotated[bool | None, typer.Option("--peers/--no-peers", hidden=True, help="Its former name.")] = None,
    kernel: Annotated[str, typer.Option(help="auto, generic, or the name of a precompiled kernel.")] = "auto",
    html: HtmlOption = True,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no tables.")] = False,
    control: Annotated[
        str | None, typer.Option(metavar="ENDPOINT", help="Open a control channel, e.g. tcp://127.0.0.1:5571.")
    ] = None,
    telemetry: Annotated[
        str | None, typer.Option(metavar="ENDPOINT", help="Publish signals, e.g. tcp://127.0.0.1:9872 (PlotJuggler).")
    ] = None,
    watch_page: Annotated[
        bool, typer.Option("--watch", help="Open the live page, to drive by hand; the virtual clock keeps real time.")
    ] = False,
    disarmed: Annotated[
        bool, typer.Option("--disarmed", help="No tick, frame or output before `torqueloop control arm` (real clock).")
    ] = False,
    start_from: Annotated[
        Path | None, typer.Option("--from", metavar="CHECKPOINT", help="Begin at a checkpoint of this rig.")
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A value instead of the file's, e.g. clock.tick_s=0.002."),
    ] = None,
) -> None:
    """Run a rig: a gearbox with its control unit (CAN) and vehicle (ZeroMQ), and a report at the end."""
    from torqueloop.hil.common.config_layers import parse_overrides
    from torqueloop.hil.rig.devices.registry import load_rig_config
    from torqueloop.hil.rig.run.session import RunSpec, run_rig

    overrides = parse_overrides(values or [])
    path, gates = locate(rig, "rigs"), gates_of(gate)
    if gate_against is not None:
        name = load_rig_config(path, overrides).rig.name
        gates = [*(gates or []), *against(gate_against, out.parent if out else Path("runs"), name, clock.value)]
    with _ended_like_ctrl_c() as came:
        result = run_rig(
            path,
            RunSpec(
                clock=clock.value,
                duration_s=duration,
                out=out,
                gates=gates,
                progress=not quiet,
                participants="config" if (participants if peers is None else peers) else "none",
                kernel=kernel,
                html=html,
                control=control,
                telemetry=telemetry,
                start_from=start_from,
                overrides=overrides,
                watch=watch_page,
                disarmed=disarmed,
            ),
        )
    with after_the_run():
        if quiet:
            say_failures(result.report)
        else:
            show_report(result.report)
    if result.state == "interrupted":
        error_console.print(f"interrupted; what was recorded is in {result.out}", soft_wrap=True, highlight=False)
        raise typer.Exit(128 + came[0] if came else INTERRUPTED)
    raise typer.Exit(result.exit_status)


@app.command(rich_help_panel=RUN, hidden=True)
@command
def simulate(
    scenario: Annotated[
        str,
        typer.Argument(
            help="Scenario file, or the bare name of an installed one.", autocompletion=names_of("scenarios")
        ),
    ] = "wot_4hp22",
    duration: DurationOption = None,
    out: OutOption = None,
    gate: GateOption = None,
    kernel: Annotated[str, typer.Option(help="auto, generic, or the name of a precompiled kernel.")] = "auto",
    csv: Annotated[bool, typer.Option("--csv", help="Write signals.csv as well (long).")] = False,
    html: HtmlOption = True,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no tables.")] = False,
) -> None:
    """The former form of `torqueloop scenario` for a driveline alone, with a kernel and a duration of its own."""
    from torqueloop.hil.report.write import write_report
    from torqueloop.hil.scenario.offline import simulate as simulate_scenario

    gates = gates_of(gate)
    path = locate(scenario, "scenarios")
    target = out or default_folder(path.stem)
    simulate_scenario(path, target, duration, kernel, not quiet and sys.stderr.isatty(), csv)
    report = write_report(target, gates, html=html)
    with after_the_run():
        if quiet:
            say_failures(report)
        else:
            show_report(report)
    raise typer.Exit(report.exit_status)


@app.command(rich_help_panel=JUDGE)
@command
def replay(run_dir: RunDir, as_json: JsonOption = False) -> None:
    """Run a recording again through the same tick and compare every recorded bit and the state hash."""
    from torqueloop.hil.rig.run.replay import replay as replay_run

    result = replay_run(run_dir)
    if as_json:
        print_json(result.as_dict())
    else:
        verdict = ("identical", "bold green") if result.passed else ("different", "bold red")
        counts = f": {result.ticks} ticks replayed, {result.compared} samples equal bit by bit"
        out_console.print(Text.assemble(verdict, counts), soft_wrap=True)
        out_console.print(f"  hash recorded {result.hash_recorded or 'none'}  replayed {result.hash_replayed}")
        if result.difference is not None:
            out_console.print(f"  first difference: {result.difference}", soft_wrap=True)
        for remark in result.remarks:
            out_console.print(f"  {remark}", soft_wrap=True)
    raise typer.Exit(OK if result.passed else FAILED)


@app.command(rich_help_panel=MODEL)
@command
def gearbox(
    name: Annotated[
        str,
        typer.Argument(
            help="Gearbox file, or the bare name of an installed one.", autocompletion=names_of("gearboxes")
        ),
    ] = "zf_4hp22",
    plot: PlotOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print ratios, torques of elements per Nm and slips of open elements in every gear, exact from tooth numbers."""
    from torqueloop.core.analyse.gearbox_report import gearbox_report

    made = gearbox_report(locate(name, "gearboxes"))
    if as_json:
        print_json(made.as_dict())
    else:
        typer.echo(made.text())
    if plot is not None:
        from torqueloop.core.analyse.gearbox_plot import plot_gearbox

        path = plot_gearbox(made, plot)
        error_console.print(f"{path}", highlight=False)


@app.command(rich_help_panel=MACHINE)
@command
def doctor(
    rig: Annotated[
        str | None,
        typer.Option("--rig", metavar="FILE", help="Only what this rig file needs, with its CPU and period."),
    ] = None,
    duration: Annotated[
        float,
        typer.Option("--duration", "--probe", metavar="S", min=0.0, max=600.0, help="Length of the latency test."),
    ] = 2.0,
    cpu: Annotated[
        str | None, typer.Option(metavar="N", help="CPU to measure on: a number, auto, none (any), all (each).")
    ] = None,
    calibrate: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Drive the outputs that are wired to inputs (--rig); write corrections to FILE."
        ),
    ] = None,
    simulated: Annotated[
        bool, typer.Option("--simulated", help="With --calibrate: I/O devices simulate their hardware.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Examine whether this machine is fit for real time (rights, kernel, CPUs, clock, bus, latency); say what to
    change."""
    from torqueloop.hil.doctor import SET_UP, calibrated, examine, exit_status

    if calibrate is not None and rig is None:
        raise typer.BadParameter("--calibrate needs --rig")
    path = None if rig is None else locate(rig, "rigs")
    if calibrate is not None and path is not None:
        findings = calibrated(path, calibrate, simulated)
    else:
        findings = examine(duration, path, cpu)
    status = exit_status(findings)
    if as_json:
        print_json({"fit": status == OK, "findings": [f.as_dict() for f in findings]})
        raise typer.Exit(status)
    table = Table(box=None, pad_edge=False, show_header=False)
    styles = {"ok": "green", "note": "yellow", "fail": "bold red"}
    for f in findings:
        advice = (f"\n{f.advice}", "dim") if f.advice else ""
        table.add_row(Text(f.level, styles[f.level]), f.name, Text.assemble(f.text, advice))
    out_console.print(table)
    if calibrate is not None:
        raise typer.Exit(status)
    if any(f.advice for f in findings if f.name in SET_UP or f.name.startswith("CAN ")):
        out_console.print("`torqueloop setup-host --dry-run` shows the files and commands that change this")
    if status != OK:
        out_console.print(Text.assemble(("not fit for real time", "bold red"), "; `--clock virtual` works everywhere"))
    else:
        notes = any(f.level == "note" for f in findings)
        out_console.print(Text.assemble(("fit for real time", "bold green"), " (see the notes)" if notes else ""))
    raise typer.Exit(status)


@app.command(rich_help_panel=BUS)
@command
def include() -> None:
    """Print the folder of torqueloop_ecu.h, for the compiler of a control unit: cc -I "$(torqueloop include)" ..."""
    from torqueloop.hil.ecu.c_header import INCLUDE

    print(INCLUDE)


app.command(rich_help_panel=JUDGE)(report)
app.command(rich_help_panel=RUN)(scenario)
app.command(rich_help_panel=RUN)(sweep)
app.command(rich_help_panel=RUN)(watch)
app.add_typer(control_app, name="control", rich_help_panel=RUN)
app.command(rich_help_panel=JUDGE)(compare)
app.command(rich_help_panel=JUDGE)(runs)
app.command(rich_help_panel=JUDGE)(export)
app.command(rich_help_panel=JUDGE)(animate)
app.add_typer(new_app, name="new", rich_help_panel=MODEL)
app.command("list", rich_help_panel=MODEL)(list_installed)
app.command("check", rich_help_panel=MODEL)(check_files)
app.command("compile", rich_help_panel=MODEL)(compile_step)
app.command(rich_help_panel=MODEL)(schema)
app.command(rich_help_panel=MODEL)(docs)
app.add_typer(bus_app, name="bus", rich_help_panel=BUS)
app.command(rich_help_panel=BUS)(tcu)
app.command(rich_help_panel=BUS)(vehicle)
app.command(rich_help_panel=BUS)(keys)
app.command(rich_help_panel=MACHINE)(wire)
app.command("setup-host", rich_help_panel=MACHINE)(setup_host)


def _version(wanted: bool) -> None:
    if wanted:
        import torqueloop

        typer.echo(f"torqueloop {torqueloop.__version__}")
        raise typer.Exit(OK)


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Entry point of the `torqueloop` script."""
    put_off_asammdf()
    steady_streams()
    app(prog_name="torqueloop")
