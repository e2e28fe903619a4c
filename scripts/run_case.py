"""Run reference cases and compare them with their trajectories; one JSON line per case on stdout.

    python scripts/run_case.py rt_tests/reference/msl/CoupledClutches
    python scripts/run_case.py --substeps 8 rt_tests/reference/msl/*/
    python scripts/run_case.py --convergence rt_tests/reference/msl/*/

A case is a directory with case.yaml and reference.csv (format: rt_tests/reference/msl/README.md). Errors are relative
to each column's range: `raw`; `shifted` (time shift of up to 10 us allowed); `beyond` (shifted, beyond the reference's
own deviation). Exit status: 0 all cases compared, 1 a case has unsupported parts or failed, 2 wrong input.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path

TREE = Path(__file__).resolve().parent.parent / "build" / "tree"


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", nargs="+", metavar="DIR", help="directories with case.yaml and reference.csv")
    parser.add_argument("--tick", type=float, default=1e-3, help="tick in s (default 1e-3)")
    parser.add_argument("--substeps", type=int, default=1, help="steps per tick (default 1)")
    parser.add_argument(
        "--order", choices=("auto", "2", "4"), default="4", help="order of the integrator (default 4, the accurate one)"
    )
    parser.add_argument("--kernel", default="auto", help='"auto", "generic" or the name of a precompiled kernel')
    parser.add_argument("--convergence", action="store_true", help="print a table for h = 4, 2, 1, 0.5 ms instead")
    given = parser.parse_args(arguments)
    if not (given.tick > 0.0 and math.isfinite(given.tick)) or given.substeps < 1:
        parser.error("--tick must be positive and --substeps at least 1")
    try:
        from torqueloop.core.case_run import convergence, run_case
        from torqueloop.core.errors import TorqueloopError
    except ImportError:
        # not installed: the package tree that setup.py lays beside the sources
        sys.path.insert(0, str(TREE))
        from torqueloop.core.case_run import convergence, run_case
        from torqueloop.core.errors import TorqueloopError
    status = 0
    for directory in given.directories:
        try:
            if given.convergence:
                print(convergence(directory, order=given.order, kernel=given.kernel).text(), flush=True)
                continue
            result = run_case(directory, given.tick, given.substeps, given.order, given.kernel)
        except TorqueloopError as error:
            print(f"run_case: {directory}: {error}", file=sys.stderr)
            status = 2
            continue
        print(json.dumps(result.as_dict(), allow_nan=False), flush=True)
        if result.unsupported or result.failure:
            status = max(status, 1)
    return status


if __name__ == "__main__":
    sys.exit(main())
