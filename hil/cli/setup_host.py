"""torqueloop setup-host: set up a computer for rigs, and undo it."""

from __future__ import annotations

import getpass
import os
from pathlib import Path
from typing import Annotated

import typer

from torqueloop.hil.cli.common import FAILED, OK, command, names_of, out_console
from torqueloop.hil.common.locate import locate


@command
def setup_host(
    rig: Annotated[str | None, typer.Argument(help="Rig file: its CAN interfaces, and a service that runs it.",
                                              autocompletion=names_of("rigs"))] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be written, set and run.")] = False,
    do_apply: Annotated[bool, typer.Option("--apply", help="Do it. What stood before is kept.")] = False,
    do_undo: Annotated[bool, typer.Option("--undo", help="Restore what stood before.")] = False,
    root: Annotated[Path, typer.Option(metavar="DIR", help="Root folder of the system; in others no command runs.")]
    = Path("/"),
    user: Annotated[str | None, typer.Option(help="User who runs rigs; default: who called sudo.")] = None,
    cpus: Annotated[str | None, typer.Option(metavar="LIST", help="CPUs kept free for loops, such as 2-3, or none; "
                                             "default: the last.")] = None,
    keep: Annotated[int, typer.Option(metavar="N", min=1, help="Runs that the service of the rig keeps.")] = 20,
) -> None:  # fmt: skip
    """Set up a computer for rigs: limits, device rights, isolated CPUs, governor, CAN interfaces, a service that runs a
    rig from the start of the computer on."""
    from torqueloop.hil.doctor.host_files import chosen_cpus, planned
    from torqueloop.hil.doctor.setup_host import apply, described, undo
    from torqueloop.hil.rig.resolve.plan import load_plan

    if dry_run + do_apply + do_undo != 1:
        raise typer.BadParameter("one of --dry-run, --apply and --undo is needed")
    if do_undo:
        lines, well = undo(root)
    else:
        n = os.cpu_count() or 1
        who = user or os.environ.get("SUDO_USER") or getpass.getuser()
        plan = planned(
            who, chosen_cpus(cpus, n), n, None if rig is None else load_plan(locate(rig, "rigs")), keep, root
        )
        lines, well = (described(plan, root), True) if dry_run else apply(plan, root)
    for line in lines:
        out_console.print(line, markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(OK if well else FAILED)
