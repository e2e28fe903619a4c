"""`torqueloop scenario`: what a rig or a driveline does in steps, with verdicts."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.cli.common import (
    FAILED,
    OK,
    WRONG_INPUT,
    JsonOption,
    command,
    error_console,
    out_console,
    print_json,
)
from torqueloop.hil.cli.random_drives import random_drives
from torqueloop.hil.common.locate import default_folder, installed


class Clock(StrEnum):
    """--clock"""

    virtual = "virtual"
    real = "real"


def _numbers(texts: list[str]) -> dict[str, float]:
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            equals = ""
        if not equals:
            raise ConfigError("{value} is not NAME=NUMBER", key="param", value=text, allowed="e.g. v_kmh=80")
    return found


@command
def scenario(
    scenarios: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME...]", help="Scenario files, or names of installed ones.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Run all installed scenarios; with --rig, --processes or --clock real only "
        "those of rigs.")
    ] = False,
    show: Annotated[bool, typer.Option("--list", help="List the installed scenarios and run nothing.")] = False,
    rig: Annotated[
        str | None, typer.Option(metavar="FILE", help="Run on this rig instead of the one in the scenario.")
    ] = None,
    param: Annotated[
        list[str] | None, typer.Option("--param", metavar="NAME=NUMBER", help="Replace the value of a parameter.")
    ] = None,
    values: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Replace a value of the rig file.")
    ] = None,
    clock: Annotated[
        Clock, typer.Option(help="virtual: lockstep, as fast as possible; real: with deadlines.")
    ] = Clock.virtual,
    processes: Annotated[
        bool, typer.Option(help="Run control unit and vehicle in processes of their own on the virtual clock, too.")
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", "-j", min=1, help="Scenarios at a time; default: one for each CPU, 1 on the real clock."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Default: runs/TIME-scenarios; a run in each.")
    ] = None,
    random: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=1_000_000, help="Run N random sequences of pedals and lever instead, "
                     "judged by the scenario's checks on the whole run; the first that fails is shrunk."),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="S", help="With --random: the same seed gives the same sequences.")] = 1,
    html: Annotated[bool, typer.Option("--html/--no-html", help="Write report.html of each.")] = True,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Run scenarios with verdicts: each step must begin, each check must hold. Writes junit.xml and a run of each."""
    from torqueloop.hil.common.config_layers import parse_overrides
    from torqueloop.hil.results.files import plain
    from torqueloop.hil.scenario.run import ScenarioResult, run_all, write_junit

    known = dict(sorted(installed("scenarios").items()))
    if show:
        raise typer.Exit(_list(known))
    if random is not None:
        if clock is Clock.real:
            raise ConfigError("{key}: random sequences run on the virtual clock", key="clock", value=clock.value)
        folder = out or default_folder("random")
        count = jobs or os.cpu_count() or 1
        overrides = parse_overrides(values or [])
        raise typer.Exit(random_drives(random, seed, scenarios or [], rig, overrides, folder, count, as_json))
    rigs_only = rig is not None or clock is Clock.real or processes
    every = [path for path in known.values() if everything and (not rigs_only or _of_a_rig(path))]
    wanted: list[Any] = [*(scenarios or []), *every]
    if not wanted:
        raise ConfigError("no scenario is named", hint=f"--all, or some of: {', '.join(known)}")
    options: dict[str, Any] = {
        "parameters": _numbers(param or []), "rig": rig, "clock": clock.value, "processes": processes, "html": html,
        "overrides": parse_overrides(values or []),
    }  # fmt: skip
    folder = out or default_folder("scenarios")
    at_a_time = jobs or (1 if clock is Clock.real else os.cpu_count() or 1)
    results: list[ScenarioResult] = []
    for result in run_all(wanted, folder, at_a_time, **options):
        results.append(result)
        if not as_json:
            _print(result)
    folder.mkdir(parents=True, exist_ok=True)
    write_junit(results, folder / "junit.xml")
    failed = [r.name for r in results if not r.passed]
    if as_json:
        print_json(plain({"passed": not failed, "scenarios": results}))
    else:
        verdict = ("passed", "bold green") if not failed else ("failed", "bold red")
        counts = f": {len(results) - len(failed)} of {len(results)} scenarios; runs in {folder}"
        out_console.print(Text.assemble(verdict, counts), soft_wrap=True, highlight=False)
    if any(r.error for r in results):
        raise typer.Exit(WRONG_INPUT)
    raise typer.Exit(FAILED if failed else OK)


def _of_a_rig(path: Path) -> bool:
    from torqueloop.hil.scenario.scenario_tables import load_scenario

    return load_scenario(path).rig is not None


def _list(known: dict[str, Path]) -> int:
    from torqueloop.core.describe.reading import read_toml

    table = Table(box=None, pad_edge=False, show_header=False)
    for name, path in known.items():
        table.add_row(name, str(read_toml(path)["scenario"].get("text", "")))
    out_console.print(table)
    return OK


def _print(result: Any) -> None:
    head = ("passed", "green") if result.passed else ("failed", "bold red")
    line = Text.assemble(head, " ", (result.name, "bold"), f" ({result.duration_s:.1f} s)")
    out_console.print(line, highlight=False)
    if result.error:
        error_console.print(f"  {result.error}", soft_wrap=True, highlight=False)
    table = Table(box=None, pad_edge=False, show_header=False)
    for v in result.verdicts:
        mark = Text("  ok", "green") if v.passed else Text("  no", "bold red")
        when = "" if v.t_s is None else f"{v.t_s:.3f} s"
        table.add_row(mark, v.kind, when, v.name, v.text)
    if result.verdicts:
        out_console.print(table)
    for text in result.failures:
        out_console.print(Text.assemble("  ", ("no", "bold red"), f" {text}"), soft_wrap=True, highlight=False)
    if result.path is not None and not result.passed:
        page = result.path / "report.html"
        look_at = f"report: {page}" if page.exists() else f"run: {result.path}"
        out_console.print(f"  {look_at}", soft_wrap=True, highlight=False)
