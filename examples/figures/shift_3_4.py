#!/usr/bin/env python
"""Picture and figures of the 3 to 4 study: profiles of the scenario beside the best run (Otter, Dempsey, Schlegel 2000,
fig. 12).

    torqueloop sweep shift_3_4 --out runs/shift_3_4
    python examples/figures/shift_3_4.py runs/shift_3_4 [--plot docs/pictures/shift_3_4.png]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import torqueloop as tl

SHOWN = ("C11_reversal_Nm", "turning_points", "a_range_mps2", "steepest_mps3", "C12_heat_J", "cost")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    found = tl.sweep("shift_3_4", out=options.folder, html=False)
    config = found.study.job.config
    metrics = {name: m.model_dump(exclude_defaults=True) for name, m in config.metrics.items()}
    with tempfile.TemporaryDirectory() as folder:
        # the scenario as it is, with the metrics of the study
        kept = {"duration_s": config.study.duration_s, "signals": config.study.signals, "every": 5}
        as_it_is = {"study": {"of": "wot_4hp22", **kept}, "vary": {"scenario.scenario.tick_s": [1e-3]}}
        base = tl.sweep({**as_it_is, "metrics": metrics}, html=False, jobs=1, out=Path(folder) / "base")
        best = found.best(1)[0]
        print("best run", best.line.run, {k: round(v, 3) for k, v in best.line.values.items()})
        for label, outcome in (("profiles of wot_4hp22", base.runs[0]), ("best run", best)):
            print(f"{label:24s}", *(f"{name} {outcome.metrics[name]:.4g}" for name in SHOWN))
        double = [o for o in found.runs if (o.metrics["turning_points"] or 0) > 2]
        turned = [o for o in found.runs if (o.metrics["C11_reversal_Nm"] or 0) > 1]
        print(f"{len(found)} runs: double peak in {len(double)}, C11 reversed in {len(turned)}, "
              f"both in {len([o for o in double if o in turned])}")  # fmt: skip
        if options.plot:
            plot(options.plot, base.signals(0), found.signals(best.line.run))


def plot(path: Path, base: dict[str, Any], best: dict[str, Any]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(4, 2, figsize=(11, 8.5), sharex=True, sharey="row", layout="constrained")
    for column, (title, s) in enumerate((("profiles of wot_4hp22", base), ("best run of the study", best))):
        t, inside = s["t"], (s["t"] >= 17.6) & (s["t"] <= 20.2)
        axes[0][column].set_title(title)
        axes[0][column].plot(t[inside], s["car.a"][inside], color="#2563b8")
        for name, colour in (("C11.tau", "#d9660f"), ("C12.tau", "#1a8a54"), ("F14.tau", "#7d4bc0")):
            axes[1][column].plot(t[inside], s[name][inside], color=colour, label=name.partition(".")[0])
        axes[1][column].axhline(0.0, color="0.7", linewidth=0.6)
        axes[1][column].legend(loc="upper left", fontsize="small")
        axes[2][column].plot(t[inside], s["C12.w_rel"][inside], color="#1a8a54")
        axes[3][column].plot(t[inside], s["engine.w"][inside] * 9.5493, color="0.3")
        axes[3][column].set_xlabel("time [s]")
    for ax, label in zip(axes[:, 0], ("acceleration [m/s²]", "torque [Nm]", "slip of C12 [rad/s]", "engine [1/min]"),
                         strict=True):  # fmt: skip
        ax.set_ylabel(label)
    figure.savefig(path, dpi=90)


if __name__ == "__main__":
    main()
