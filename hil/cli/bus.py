"""`torqueloop bus scan`: what is on a bus, what the database knows of it, what a control unit waits for;
`torqueloop bus replay`: a recorded bus sent again."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from torqueloop.core.describe.errors import ConfigError, RangeError
from torqueloop.hil.can.multicast import DEFAULT_PORT
from torqueloop.hil.cli.common import FAILED, JsonOption, command, out_console, print_json
from torqueloop.hil.common.locate import locate

if TYPE_CHECKING:
    from torqueloop.hil.can.scan import Scan

DbcOption = Annotated[
    str | None, typer.Option("--dbc", metavar="FILE", help="CAN database: DBC, ARXML, KCD, SYM; or a bare name.")
]
LogChannelOption = Annotated[str | None, typer.Option(help="Channel of the log; default: all.")]
InterfaceOption = Annotated[str, typer.Option(help="udp_multicast, socketcan, or any of python-can.")]
ChannelOption = Annotated[str, typer.Option(help="Network device, multicast group, channel of the adapter.")]
PortOption = Annotated[int, typer.Option(help="UDP port (udp_multicast).")]
BitrateOption = Annotated[int | None, typer.Option(help="Bit rate of an adapter [bit/s].")]
FdOption = Annotated[bool, typer.Option("--fd", help="CAN FD.")]

bus_app: typer.Typer = typer.Typer(
    help="Examine a CAN bus, or send a recorded one again.", no_args_is_help=True, add_completion=False
)


@bus_app.callback()
def _group() -> None:
    """Examine a CAN bus, or send a recorded one again."""


@bus_app.command("scan")
@command
def scan(
    dbc: DbcOption = None,
    node: Annotated[
        str | None, typer.Option(help="Node of the control unit; lists the messages that it waits for.")
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option("--log", metavar="FILE", help="Read a bus log instead of a bus: ASC, BLF, candump ..."),
    ] = None,
    log_channel: LogChannelOption = None,
    interface: InterfaceOption = "socketcan",
    channel: ChannelOption = "can0",
    port: PortOption = DEFAULT_PORT,
    bitrate: BitrateOption = None,
    fd: FdOption = False,
    seconds: Annotated[float, typer.Option(help="How long to listen [s].")] = 5.0,
    check: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Interface file to be judged; exit status 1 if it is contradicted."),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option(metavar="OWN", help="With --check: write the result as a file that extends the interface file."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the identifiers on a bus with their cycle times, names and faults. Sends nothing."""
    from torqueloop.hil.can import scan as scanning
    from torqueloop.hil.can.bus import CanBusConfig

    if not 0.0 < seconds <= 3600.0:
        raise RangeError("{key} = {value} is out of range", key="seconds", value=seconds, allowed="0 .. 3600, not 0")
    if log is not None:
        frames = scanning.log_frames(log, log_channel)
    else:
        config = CanBusConfig(interface=interface, channel=channel, port=port, bitrate=bitrate, fd=fd)
        frames = scanning.bus_frames(config, seconds)
    if check is not None:
        from torqueloop.hil.cli.bus_check import check as judged_by

        if not judged_by(frames, check, dbc, write, str(log.name if log is not None else channel), json):
            raise typer.Exit(FAILED)
        return
    if write is not None:
        raise ConfigError("{key} = {value}: what is written belongs to an interface file", key="write",
                          value=str(write), allowed="together with --check")  # fmt: skip
    found = scanning.scan(frames, None if dbc is None else locate(dbc, "can"), node)
    if json:
        print_json({**asdict(found), "remarks": {row.can_id: row.remarks for row in found.heard if row.remarks}})
        return
    _show(found, node)


def _show(found: Scan, node: str | None) -> None:
    table = Table("id", "message", "from", "frames", "cycle ms", "min .. max", "remarks", box=None, pad_edge=False)
    for row in found.heard:
        extended = row.can_id >> 31
        times = "" if row.min_s is None else f"{1e3 * row.min_s:.1f} .. {1e3 * (row.max_s or 0.0):.1f}"
        table.add_row(
            f"{row.can_id & 0x1FFFFFFF:0{8 if extended else 3}X}", row.name or "-", ", ".join(row.senders),
            str(row.frames), "" if row.mean_s is None else f"{1e3 * row.mean_s:.1f}", times, "; ".join(row.remarks),
        )  # fmt: skip
    out_console.print(table, soft_wrap=True, highlight=False)
    unknown = sum(not row.name for row in found.heard)
    text = f"{found.frames} frames in {found.seconds:.1f} s, {len(found.heard)} identifiers, {unknown} not in a"
    text += " database"
    for what, n in (("error frames", found.errors), ("remote frames", found.remote), ("beyond the list", found.more)):
        text += f", {n} {what}" if n else ""
    out_console.print(text, soft_wrap=True, highlight=False)
    if node is not None:
        for name, senders in found.missing.items():
            whose = f" of {', '.join(senders)}" if senders else ""
            out_console.print(f"{node} waits for {name}{whose}, but no node sends it", soft_wrap=True, highlight=False)
        if found.silent:
            out_console.print(f"not received from {node}: {', '.join(found.silent)}", soft_wrap=True, highlight=False)


@bus_app.command("replay")
@command
def replay(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="BLF, ASC, candump (.log), MF4, TRC, CSV.")],
    dbc: DbcOption = None,
    node: Annotated[str | None, typer.Option(help="Node that is on the bus: its messages are not sent.")] = None,
    protect: Annotated[
        bool, typer.Option("--protect", help="Compute counters and checksums anew, by the rules of the database.")
    ] = False,
    log_channel: LogChannelOption = None,
    interface: InterfaceOption = "socketcan",
    channel: ChannelOption = "can0",
    port: PortOption = DEFAULT_PORT,
    bitrate: BitrateOption = None,
    fd: FdOption = False,
    json: JsonOption = False,
) -> None:
    """Send a recorded bus to a control unit, each frame at its time, and report how late the frames were."""
    from torqueloop.hil.can.bus import CanBusConfig, open_bus
    from torqueloop.hil.ecu.replay_bus import replay_bus, rest_of_bus

    frames, protector = rest_of_bus(log, None if dbc is None else locate(dbc, "can"), node, log_channel, protect)
    bus = open_bus(CanBusConfig(interface=interface, channel=channel, port=port, bitrate=bitrate, fd=fd))
    try:
        done = replay_bus(frames, bus, protector)
    finally:
        bus.close()
    if json:
        print_json(asdict(done))
        return
    late = done.lateness
    text = f"{done.frames} frames in {done.seconds:.3f} s, {done.others} of the log not to be sent"
    text += f"; late by {late.p50_ms:.3f} ms (median), {late.p99_ms:.3f} ms (99 %), {late.max_ms:.3f} ms (at most)"
    text += f"; {done.protected} protected anew, {done.left} left as recorded" if protect else ""
    text += f"; {done.refused} refused by the bus" if done.refused else ""
    out_console.print(text, soft_wrap=True, highlight=False)
