"""`torqueloop control ENDPOINT ...`: a running rig from the command line; `torqueloop keys`."""

from __future__ import annotations

import fnmatch
import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.cli.common import JsonOption, command, out_console, print_json

if TYPE_CHECKING:
    from torqueloop.hil.control.client import Client

control_app: typer.Typer = typer.Typer(
    help="Read and write a running rig by name (docs/control.md).\n\n"
    "The endpoint is printed by `torqueloop run --control tcp://127.0.0.1:0` and written to run.json.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

KeyOption = Annotated[
    Path | None, typer.Option("--key", metavar="FILE", help="Own CURVE key (NAME.key_secret of `torqueloop keys`).")
]
ServerKeyOption = Annotated[
    Path | None, typer.Option("--server-key", metavar="FILE", help="Public CURVE key of the rig (NAME.key).")
]
AtOption = Annotated[
    int, typer.Option("--at", metavar="TICK", help="Simulated tick in which it takes effect; default: the next.")
]
Names = Annotated[list[str], typer.Argument(metavar="NAME...")]
Values = Annotated[list[str], typer.Argument(metavar="NAME=VALUE...", help="Values in SI, all in one tick or none.")]


@control_app.callback()
def _connection(
    context: typer.Context,
    endpoint: Annotated[str, typer.Argument(help="Of the rig, e.g. tcp://127.0.0.1:5571.")],
    key: KeyOption = None,
    server_key: ServerKeyOption = None,
    timeout: Annotated[float, typer.Option(metavar="S", min=0.1, help="Longest time for an answer.")] = 10.0,
) -> None:
    context.obj = (endpoint, key, server_key, timeout)


def _client(context: typer.Context) -> Client:
    from torqueloop.hil.control.client import connect

    return connect(*context.obj)


def _parsed(texts: list[str]) -> dict[str, float]:
    values = {}
    for text in texts:
        name, separator, number = text.partition("=")
        try:
            values[name.strip()] = float(number)
        except ValueError:
            separator = ""
        if not separator or not name.strip():
            raise ConfigError("{value} is not allowed", key="value", value=text, allowed="NAME=NUMBER, in SI")
    return values


def _show(answer: dict[str, Any], as_json: bool, text: str = "") -> None:
    if as_json:
        print_json(answer)
    elif text:
        out_console.print(text, highlight=False, markup=False)


def _number(value: float) -> str:
    return f"{value:.6g}"


@control_app.command("list")
@command
def list_names(
    context: typer.Context,
    pattern: Annotated[str, typer.Argument(help="Names to show, e.g. 'engine.*'.")] = "*",
    as_json: JsonOption = False,
) -> None:
    """List all signals and parameters: value, unit, permitted commands, allowed range."""
    with _client(context) as rig:
        entries = [entry for entry in rig.list() if fnmatch.fnmatchcase(entry["name"], pattern)]
    if as_json:
        print_json(entries)
        return
    table = Table("name", "value", "unit", "kind", "may be", "allowed", box=None, header_style="bold")
    for e in entries:
        table.add_row(e["name"], _number(e["value"]), e["unit"], e["kind"], e["writable"], e["allowed"])
    out_console.print(table)


@control_app.command()
@command
def get(context: typer.Context, names: Names, as_json: JsonOption = False) -> None:
    """Show present values in SI units."""
    with _client(context) as rig:
        values = rig.get(names)
    _show(values, as_json, "\n".join(f"{name} = {value!r}" for name, value in values.items()))


@control_app.command("set")
@command
def set_values(context: typer.Context, values: Values, at: AtOption = -1, as_json: JsonOption = False) -> None:
    """Set constants and parameters."""
    with _client(context) as rig:
        tick = rig.set(_parsed(values), at)
    _show({"tick": tick}, as_json, f"in effect from tick {tick} on")


@control_app.command()
@command
def override(context: typer.Context, values: Values, at: AtOption = -1, as_json: JsonOption = False) -> None:
    """Set model inputs, driver or received signals to values that they keep until they are released."""
    with _client(context) as rig:
        tick = rig.override(_parsed(values), at)
    _show({"tick": tick}, as_json, f"held from tick {tick} on")


@control_app.command()
@command
def release(
    context: typer.Context,
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME...]", help="Default: all.")] = None,
    at: AtOption = -1,
    as_json: JsonOption = False,
) -> None:
    """Release overridden signals."""
    with _client(context) as rig:
        tick = rig.release(*(names or []), at=at)
    _show({"tick": tick}, as_json, f"released in tick {tick}")


def _order(name: str, text: str) -> None:
    @control_app.command(name, help=text)
    @command
    def send(context: typer.Context, as_json: JsonOption = False) -> None:
        with _client(context) as rig:
            _show(rig.ask(name), as_json)


_order("arm", "Arm, or arm again after disarm.")
_order("disarm", "Ramp the inputs as the safe state does, then send nothing until the rig is armed again.")
_order("safe", "Request the safe state; it lasts for the rest of the run.")
_order("stop", "End the run.")


@control_app.command()
@command
def checkpoint(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Default: tick-N.")] = "",
    at: AtOption = -1,
    as_json: JsonOption = False,
) -> None:
    """Save the whole state of the rig in its run directory."""
    with _client(context) as rig:
        answer = rig.checkpoint(name, at)
    _show(answer, as_json, f"{answer['file']} of the run directory: tick {answer['tick']}")


@control_app.command()
@command
def restore(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of a checkpoint of this run.")],
    at: AtOption = -1,
    as_json: JsonOption = False,
) -> None:
    """Return to a checkpoint of this run."""
    with _client(context) as rig:
        answer = rig.restore(name, at)
    stay = [peer for peer, gone in answer["participants"].items() if not gone]
    note = f"; {', '.join(stay)} did not go back to it" if stay else ""
    _show(answer, as_json, f"continues from tick {answer['tick']}{note}")


@control_app.command()
@command
def record(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Default: part-N.")] = "",
    signal: Annotated[
        list[str] | None, typer.Option("--signal", metavar="PATTERN", help="Show only these, e.g. 'engine.*'.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Begin a second recording, recordings/NAME in the run directory, which can be read like a run."""
    with _client(context) as rig:
        answer = rig.record(name, signal or [])
    _show(answer, as_json, f"{answer['folder']} of the run directory: {answer['signals']} signals from now on")


@control_app.command("stop-recording")
@command
def stop_recording(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of a running recording.")],
    as_json: JsonOption = False,
) -> None:
    """End a recording."""
    with _client(context) as rig:
        answer = rig.stop_recording(name)
    ticks = f"ticks {answer['first_tick']} to {answer['last_tick']}"
    _show(answer, as_json, f"{answer['folder']} of the run directory: {answer['samples']} samples, {ticks}")


@control_app.command()
@command
def status(context: typer.Context, as_json: JsonOption = False) -> None:
    """Show tick, state, first cause of the safe state, overridden signals and counters."""
    with _client(context) as rig:
        answer = rig.status()
    if as_json:
        print_json(answer)
        return
    table = Table(show_header=False, box=None)
    for name, value in answer.items():
        if isinstance(value, dict):
            value = ", ".join(f"{k} {v}" for k, v in value.items())
        table.add_row(name, str(value))
    out_console.print(table)


@control_app.command()
@command
def watch(
    context: typer.Context,
    names: Names,
    every: Annotated[float, typer.Option(metavar="S", min=0.01, help="Time between two readings.")] = 0.2,
    count: Annotated[int | None, typer.Option(min=1, help="Number of readings; default: until the run ends.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show values repeatedly, one line each time."""
    with _client(context) as rig:
        if not as_json:
            typer.echo("\t".join(["tick", *names]))
        for tick, values in itertools.islice(rig.watch(names, every), count):
            if as_json:
                print_json({"tick": tick, **values})
            else:
                typer.echo("\t".join([str(tick), *(_number(values[name]) for name in names)]))


@command
def keys(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder for the two files.")],
    name: Annotated[str, typer.Option(help="Name of the pair.")] = "rig",
) -> None:
    """Make a CURVE key pair for a control channel or vehicle link that is not on loopback."""
    from torqueloop.hil.link.keys import make_keys

    public, secret = make_keys(folder, name)
    out_console.print(f"{secret}: secret, stays here\n{public}: public, for the other side", highlight=False)
