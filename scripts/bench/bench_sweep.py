#!/usr/bin/env python
"""What a study costs beside simulating: N runs of the 3 to 4 shift on one core, two cores, two Dask workers.

    python scripts/bench/bench_sweep.py [--runs 10000] [--only one two dask] [--model] [--out FILE.json]

--model: runs that differ in a value of the driveline (compiled each), instead of in inputs only.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import torqueloop as tl


@contextmanager
def dask_workers(wanted: bool):
    """Address of a scheduler with two worker processes; None where it is not wanted."""
    if not wanted:
        yield None
        return
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, protocol="tcp") as cluster:
        yield cluster.scheduler_address


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--only", nargs="+", choices=["one", "two", "dask"], default=["one", "two", "dask"])
    parser.add_argument("--model", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    found = []
    for where in options.only:
        with tempfile.TemporaryDirectory() as folder, dask_workers(where == "dask") as address:
            values = {"study.runs": options.runs, "study.signals": []}
            study = _model_study(Path(folder)) if options.model else "shift_3_4"
            result = tl.sweep(study, values=values,
                              out=Path(folder) / "study", jobs={"one": 1}.get(where, 2), scheduler=address,
                              html=False)  # fmt: skip
        t = result.timing
        line = {
            "where": where,
            "runs": t.runs,
            "wall_s": round(t.wall_s, 1),
            "runs_per_s": round(t.runs / t.wall_s, 2),
            "ms_per_run_simulating": round(1e3 * t.run_s / t.runs, 2),
            "overhead_percent": round(100 * t.overhead, 1),
            "load_at_the_end": round(os.getloadavg()[0], 1),
        }
        print(line, file=sys.stderr)
        found.append(line)
    print(json.dumps(found, indent=1))
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _model_study(folder: Path) -> Path:
    path = folder / "model.toml"
    path.write_text('[study]\nname = "model"\nof = "wot_4hp22"\ndesign = "sobol"\nruns = 2\nduration_s = 20.5\n'
                    '[vary]\n"model.components.car.m_kg" = { low = 1300.0, high = 1700.0 }\n[metrics]\n'
                    'v = { signal = "car.v", take = "last" }\n', encoding="utf-8")  # fmt: skip
    return path


if __name__ == "__main__":
    main()
