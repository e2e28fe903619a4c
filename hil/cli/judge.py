"""`torqueloop report`, and what all commands that judge a run share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.cli.common import JsonOption, command, error_console, out_console, print_json

GateOption = Annotated[
    list[str] | None,
    typer.Option("--gate", metavar="EXPR", help='Conditions on the report, e.g. "missed==0, compute_p99_us<200".'),
]
HtmlOption = Annotated[bool, typer.Option("--html/--no-html", help="Write report.html.")]
AgainstOption = Annotated[
    str | None,
    typer.Option(
        "--gate-against",
        metavar="RUN",
        help="Directory of an earlier run, or `last` (the last run of this rig in this folder that passed). Nothing "
        "may be worse than in that run (docs/history.md).",
    ),
]
Mf4Option = Annotated[
    bool, typer.Option("--mf4", hidden=True, help="Write DIR/signals.mf4 and DIR/bus.mf4 (extra [mf4]).")
]
BusLogOption = Annotated[
    list[str] | None,
    typer.Option("--bus-log", metavar="FORMAT", hidden=True, help="Write DIR/bus.FORMAT: blf, asc, mf4, trc, csv."),
]
CandumpOption = Annotated[
    bool, typer.Option("--candump", hidden=True, help="Write DIR/bus.log: the frames as candump does.")
]
RunDirs = Annotated[list[Path], typer.Argument(metavar="DIR...", help="Directory of a run, or several of one rig.")]
MergedOption = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="With several runs: folder for merged.json and merged.html."),
]


def gates_of(texts: list[str] | None) -> list[str] | None:
    """Parsed before anything starts, so that a typing error is found first."""
    from torqueloop.hil.results.gates import parse_gates

    parse_gates(texts or [], "command line")
    return texts or None


def against(run: str | None, folder: Path, rig: str, clock: str, without: Path | None = None) -> list[str]:
    """Gates that hold a run to an earlier one."""
    from torqueloop.hil.runs.history import gates_against, last_good

    if run is None:
        return []
    good = last_good(folder, rig, clock, without) if run == "last" else Path(run)
    error_console.print(f"held to {good}", soft_wrap=True, highlight=False)
    return gates_against(good)


def show_report(report: Any) -> None:
    from torqueloop.hil.report.console import print_report

    print_report(report, out_console)
    if "html" in report.files:
        out_console.print(f"report: {report.files['html']}", soft_wrap=True, highlight=False)


def _report_together(reports: list[Any], out: Path | None, as_json: bool) -> int:
    from torqueloop.hil.report.merged import merge, print_merged, write_merged

    merged = merge(reports)
    files = write_merged(merged, out) if out is not None else {}
    if as_json:
        print_json(merged.as_dict())
    else:
        print_merged(merged, out_console)
        for path in files.values():
            out_console.print(f"written: {path}", soft_wrap=True, highlight=False)
    return merged.exit_status


def say_failures(report: Any) -> None:
    """The reason why the exit status is not 0, for a quiet run."""
    if report.inconclusive:
        error_console.print(f"inconclusive: {report.inconclusive}", soft_wrap=True, highlight=False, markup=False)
    for gate in report.gates:
        if not gate.passed:
            error_console.print(f"failed: {gate.text}: {gate.cause}", soft_wrap=True, highlight=False, markup=False)
    for check in report.checks:
        if check.counts and not check.passed:
            error_console.print(f"failed: {check.name}: {check.text}", soft_wrap=True, highlight=False, markup=False)


@command
def report(
    run_dirs: RunDirs,
    gate: GateOption = None,
    gate_against: AgainstOption = None,
    html: HtmlOption = True,
    mf4: Mf4Option = False,
    candump: CandumpOption = False,
    bus_log: BusLogOption = None,
    weigh: Annotated[
        bool,
        typer.Option(
            "--weigh", help="Run the rig once with 10 % more of each assumed number, and add the result to the page."
        ),
    ] = False,
    figures: Annotated[
        Path | None,
        typer.Option("--figures", metavar="DIR", help="Draw the figures as SVG (extra [report])."),
    ] = None,
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve the page on this computer, every sample of a long recording with it.")
    ] = False,
    as_json: JsonOption = False,
    out: MergedOption = None,
) -> None:
    """Make the report of a run again, even of a killed one: console, report.html, report.json, junit.xml.

    Several runs of one rig are judged one by one, and their times are added up.
    """
    from torqueloop.hil.cli.facts import weigh_run
    from torqueloop.hil.record.bus_log import write_bus_log, write_candump
    from torqueloop.hil.record.mf4 import write_mf4
    from torqueloop.hil.report.write import UnwrittenReport, write_report
    from torqueloop.hil.results.files import read_run_info

    if len(run_dirs) > 1:
        if gate_against is not None:
            raise ConfigError("{key}: one run is held to an earlier one", key="gate-against", value=gate_against)
        raise typer.Exit(_report_together([write_report(d, gates_of(gate), html=html) for d in run_dirs], out, as_json))
    run_dir, gates = run_dirs[0], gates_of(gate)
    if gate_against is not None:
        info = read_run_info(run_dir)
        name, clock = (info.rig, info.clock) if info is not None else ("", "")
        gates = [*(gates or []), *against(gate_against, run_dir.absolute().parent, name, clock, run_dir)]
    if weigh:
        weigh_run(run_dir)
    try:
        made = write_report(run_dir, gates, html=html)
    except UnwrittenReport as error:
        # read-only or full: what it says is worth having all the same
        error.report.files.clear()
        show_report(error.report)
        raise
    notes = []
    if candump:
        count = write_candump(run_dir, run_dir / "bus.log")
        notes.append(f"{run_dir / 'bus.log'}: {count} frames")
    if mf4:
        count = write_mf4(run_dir, run_dir / "signals.mf4", made.run.signals)
        notes.append(f"{run_dir / 'signals.mf4'}: {count} channels")
    if figures is not None:
        from torqueloop.hil.report.html import write_figures

        notes.append(f"{figures}: {len(write_figures(made, figures))} figures")
    recorded = os.path.isdir(run_dir / "bus")
    for ending in dict.fromkeys([*(bus_log or []), *(["mf4"] if mf4 and recorded else [])]):
        count = write_bus_log(run_dir, run_dir / f"bus.{ending}")
        notes.append(f"{run_dir / f'bus.{ending}'}: {count} frames")
    if as_json:
        typer.echo((run_dir / "report.json").read_text(encoding="utf-8"))
    else:
        show_report(made)
        for note in notes:
            out_console.print(note, soft_wrap=True, highlight=False)
    if serve:
        from torqueloop.hil.report.serve import ReportServer

        server = ReportServer(made)
        out_console.print(f"{server.url}  (Ctrl-C ends it)", soft_wrap=True, highlight=False)
        server.serve_forever()
    raise typer.Exit(made.exit_status)
