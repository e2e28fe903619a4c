"""A tree of bodies offline: python -m torqueloop.hil.multibody FILE [--out CSV] [--set KEY=VALUE]"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

import numpy as np

from torqueloop.core.describe.errors import TorqueloopError
from torqueloop.core.describe.naming import cell
from torqueloop.core.multibody import Solution, State, Trajectory, integrate
from torqueloop.hil.common.config_layers import parse_overrides
from torqueloop.hil.common.locate import locate
from torqueloop.hil.multibody.build import BuiltFile, load_tree
from torqueloop.hil.multibody.outputs import instant, readers


def simulate(built: BuiltFile) -> Trajectory:
    """The run that the file describes."""
    tree = built.config.tree
    return integrate(built.system, tree.duration_s, tree.step_s, q=built.q, v=built.v)


def signals(built: BuiltFile, run: Trajectory) -> dict[str, np.ndarray]:
    """All outputs of a tree over time."""
    known = readers(built.system)
    rows = []
    for k, t in enumerate(run.t):
        state = State(run.q[k], run.v[k], run.z[k], run.u[k], run.turned[k])
        found = Solution(run.dv[k], run.du[k], run.multipliers[k], run.frictions[k])
        modes = tuple(int(mode) for mode in run.modes[k])
        now = instant(built.system, float(t), state, found, modes)
        rows.append([read(now) for _, read in known.values()])
    return {"t": run.t, **dict(zip(known, np.array(rows).T, strict=True))}


def main(arguments: list[str] | None = None) -> int:
    """Entry."""
    parser = argparse.ArgumentParser(prog="torqueloop.hil.multibody", description=__doc__)
    parser.add_argument("file", help="path, or bare name of an installed one")
    parser.add_argument("--out", type=Path, metavar="CSV", help="CSV file for all outputs of the tree, in SI")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="another value of the file")
    given = parser.parse_args(arguments)
    try:
        built = load_tree(locate(given.file, "trees"), overrides=parse_overrides(given.set))
        run = simulate(built)
    except TorqueloopError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    tree, system = built.config.tree, built.system
    print(f"{tree.name}: {len(run.t) - 1} steps of {tree.step_s:g} s, {system.nv} joint and {system.nu} shaft speeds, "
          f"{len(system.row_names)} rows")  # fmt: skip
    print(f"energy {run.energy[0]:.6g} -> {run.energy[-1]:.6g} J, put in {run.work[-1]:.6g} J, lost "
          f"{run.loss[-1]:.6g} J, missing {run.books:.1e} J; rows left by {max(run.residual):.1e}")  # fmt: skip
    if given.out is not None:
        found = signals(built, run)
        with given.out.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(map(cell, found))
            writer.writerows(zip(*(column.tolist() for column in found.values()), strict=True))
        print(given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
