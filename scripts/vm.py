#!/usr/bin/env python3
"""Run a command inside a throw-away virtual machine with a PREEMPT_RT kernel and real SocketCAN.

    scripts/vm.py [--rt|--std] [--cpus N] [--icount [SHIFT]] [--timeout S] -- COMMAND [ARGUMENT...]

The machine boots Debian's kernel under QEMU, sees the host's files read-only (what is written goes to memory and is
lost) and the current directory read-write at the same path, has vcan0 and vcan1 up, no network but loopback, and runs
COMMAND as root. Output and exit status of the command are ours.

Exit status: the command's own; 77 not available here (the reason is printed), 124 timed out, 125 the machine broke.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from vmtools.errors import SKIPPED, Unavailable
from vmtools.machine import Options, prepare, run


def main(arguments: list[str] | None = None) -> int:
    """Entry."""
    parser = argparse.ArgumentParser(prog="vm.py", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    kernels = parser.add_mutually_exclusive_group()
    kernels.add_argument("--rt", dest="flavour", action="store_const", const="rt", default="rt", help="PREEMPT_RT")
    kernels.add_argument("--std", dest="flavour", action="store_const", const="std", help="normal kernel")
    parser.add_argument("--cpus", type=int, help="virtual CPUs (2; 1 with --icount)")
    parser.add_argument("--memory", type=int, default=2048, metavar="MIB")
    parser.add_argument("--timeout", type=float, default=600, metavar="S", help="for all of it, boot included")
    parser.add_argument(
        *("--icount",),
        nargs="?",
        const=0,
        type=int,
        metavar="SHIFT",
        help="guest time counts instructions, 2^SHIFT ns each (0): latencies do not see the host at all",
    )
    parser.add_argument("--share", action="append", default=[], metavar="DIR", help="one more read-write directory")
    parser.add_argument("--append", default="", help="more of the kernel's command line, e.g. isolcpus=1")
    parser.add_argument("--console", metavar="FILE", help="keep the kernel's messages")
    parser.add_argument("--check", action="store_true", help="only make ready; status 0 or 77")
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args(arguments)
    command = given.command[1:] if given.command[:1] == ["--"] else given.command
    if not command and not given.check:
        parser.error("no command")
    if given.icount is not None and (given.cpus or 1) > 1:
        parser.error("--icount counts the instructions of one CPU")
    try:
        if given.check:
            prepare(given.flavour)
            return 0
        options = Options(
            flavour=given.flavour,
            icount=given.icount,
            cpus=given.cpus or 2,
            memory_MiB=given.memory,
            timeout_s=given.timeout,
            append=given.append,
            shares=(os.getcwd(), *given.share),
            console=given.console,
        )
        ended = run(command, options)
    except Unavailable as reason:
        print(f"vm: not available here: {reason}", file=sys.stderr)
        return SKIPPED
    except KeyboardInterrupt:
        return 130
    if given.verbose:
        print(f"vm: {ended}", file=sys.stderr)
    return ended.status


if __name__ == "__main__":
    sys.exit(main())
