"""Ratios of every installed gearbox, exact from tooth numbers."""

from torqueloop.configs import installed
from torqueloop.core.analyse.gearbox_report import gearbox_report

for name, path in installed("gearboxes").items():
    gears = {gear: state.ratio for gear, state in gearbox_report(path).gears.items() if state.ratio is not None}
    print(f"{name:20s}", "  ".join(f"{gear} {float(ratio):.3f}" for gear, ratio in gears.items()))
