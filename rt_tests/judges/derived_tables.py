#!/usr/bin/env python
"""Engine curves and converter tables that follow from what the head of their file states.

    python rt_tests/judges/derived_tables.py            # compare; 1 when a table is not what its head says
    python rt_tests/judges/derived_tables.py --write    # write the rows anew, the head stays

An engine file states displacement, torque, power and limiter (core/analyse/engine_curves.py); a converter file the
diameters from which its K follows (core/analyse/sizing.py).
"""

from __future__ import annotations

import argparse
import csv
import math
import re
import sys
from pathlib import Path

from torqueloop.core.analyse.engine_curves import RPM, STATED, stated_engine
from torqueloop.core.analyse.sizing import converter_scale

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
DIAMETERS = re.compile(r"# derived: K of (\d+) mm from that of (\d+) mm")
SOURCE = CONFIGS / "converters" / "tc_auto4_1998"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    write = parser.parse_args().write
    wrong = 0
    for path in sorted([*(CONFIGS / "engines").glob("*.csv"), *(CONFIGS / "converters").glob("*.csv")]):
        text = path.read_text(encoding="utf-8")
        head = [line for line in text.splitlines() if line.startswith("#")]
        rows = derived_rows(path, head)
        if rows is None:
            continue
        wanted = "\n".join([*head, *rows, ""])
        print(f"{path.relative_to(CONFIGS)}: {'as its head says' if text == wanted else 'differs'}")
        wrong += text != wanted
        if write:
            path.write_text(wanted, encoding="utf-8")
    return int(wrong > 0 and not write)


def derived_rows(path: Path, head: list[str]) -> list[str] | None:
    """Header line and rows of a table, None when nothing is derived in it."""
    if any(STATED.match(line) for line in head):
        rows = stated_engine(path).rows()
        return ["speed_radps,wot_Nm,closed_throttle_Nm", *(f"{w:.4f},{t:.4f},{d:.4f}" for w, t, d in rows)]
    diameters = next((found for line in head if (found := DIAMETERS.match(line))), None)
    if diameters is None:
        return None
    scale = converter_scale(float(diameters[1]), float(diameters[2]))
    return coast_rows(scale) if path.stem.endswith("_coast") else drive_rows(scale)


def source_rows(suffix: str) -> list[dict[str, float]]:
    lines = SOURCE.with_name(f"{SOURCE.name}{suffix}.csv").read_text(encoding="utf-8").splitlines()
    return [{k: float(v) for k, v in row.items()} for row in csv.DictReader(x for x in lines if x[0] != "#")]


def drive_rows(scale: float) -> list[str]:
    """mp = 1/K^2 and the torque ratio; without slip there is no torque."""
    rows = ["speed_ratio,pump_capacity_Nms2_per_rad2,torque_ratio"]
    for row in source_rows(""):
        capacity = (scale * row["K_radps_per_sqrtNm"]) ** -2 if row["speed_ratio"] < 1.0 else 0.0
        rows.append(f"{row['speed_ratio']:g},{capacity:.9g},{row['torque_ratio']:g}")
    return rows


def coast_rows(scale: float) -> list[str]:
    """coast = 80 Nm/w_t^2 over w_p/w_t, from a pump that stands to no slip."""
    points = []
    for row in source_rows("_coast"):
        w = row["turbine_speed_rpm"] * RPM
        points.append((1.0 / row["speed_ratio_t_over_p"], -row["turbine_torque_Nm"] / (scale * w) ** 2))
    stalled = (scale * source_rows("")[0]["K_radps_per_sqrtNm"]) ** -2
    rows = ["speed_ratio_p_over_t,turbine_capacity_Nms2_per_rad2"]
    for x, y in [(0.0, stalled), *sorted(points), (1.0, 0.0)]:
        rows.append(f"{x:.9g},{y:.9g}")
    assert all(math.isfinite(float(cell)) for row in rows[1:] for cell in row.split(","))
    return rows


if __name__ == "__main__":
    sys.exit(main())
