"""Which lines and branches of the parsers a fuzz target reaches, by coverage.py (pip install
'torqueloop[mutation]'): rt_tests/fuzz/fuzz --coverage."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_DRIVELINE = ("core/describe/toml_front.py", "core/describe/reading.py", "core/describe/params.py")
_LAYERS = ("hil/common/config_file.py", "hil/common/config_layers.py")
#: target -> the modules that read its input
PARSERS = {
    "gearbox": (*_DRIVELINE, "core/describe/published.py"),
    "powertrain": (*_DRIVELINE, "core/describe/tables.py", "core/describe/units.py"),
    "drive": _DRIVELINE,
    "scenario": ("hil/scenario/scenario_tables.py", "hil/rig/devices/steps.py", *_LAYERS),
    "vehicle": ("hil/vehicle/vehicle_tables.py", *_LAYERS),
    "tcu": ("hil/ecu/tcu_tables.py", *_LAYERS),
    "rig": ("hil/rig/schema/rig_file.py", "hil/rig/schema/participants.py", "hil/rig/schema/links.py",
            "hil/rig/schema/fault_tables.py", "hil/rig/schema/monitor_table.py", "hil/rig/resolve/wiring.py", *_LAYERS),
    "hydraulics": ("hil/rig/schema/hydraulic_unit.py",),
    "interface": ("hil/ecu/interface_tables.py",),
    "sketch": ("hil/new/sketch.py",),
    "study": ("hil/study/study_tables.py", "hil/study/parameter_paths.py"),
    "tree": ("hil/multibody/tree_tables.py",),
    "dbc": ("hil/can/load.py", "hil/can/database.py", "hil/can/multiplex.py", "hil/can/protect.py"),
    "bus_log": ("hil/can/recorded.py",),
    "csv": ("core/describe/tables.py",),
    "vehicle_messages": ("hil/link/messages.py",),
    "control_messages": ("hil/control/messages.py",),
    "ecu_messages": ("hil/ecu/messages.py",),
    "gates": ("hil/results/gates.py", "hil/common/expression.py"),
    "formulas": ("hil/results/gates.py", "hil/common/expression.py"),
    "conditions": ("hil/common/conditions.py", "hil/common/expression.py"),
    "page": ("hil/views/local_server.py", "hil/watch/server.py", "hil/report/serve.py"),
    "packets": ("hil/can/multicast.py",),
    "recording": ("hil/record/recording.py", "hil/record/run_data.py", "hil/rig/online/replayed_journal.py"),
    "streams": ("hil/record/recording.py", "hil/record/run_data.py", "hil/record/pieces.py", "hil/record/columns.py",
                "hil/record/bus_log.py", "hil/record/driven.py", "hil/rig/online/replayed_journal.py"),
    "checkpoint": ("hil/rig/online/checkpoint.py", "hil/rig/online/restore.py"),
    # the kernels, which coverage.py does not measure
    "frames": (),
    "tick": (),
}  # fmt: skip


class Reached:
    """Measures the parsers of some targets from its making on. They are imported before anything else, so that their
    definitions count."""

    def __init__(self, targets: Iterable[str]) -> None:
        self.files = sorted({file for target in targets for file in PARSERS[target]})
        import coverage

        self.measured = coverage.Coverage(
            branch=True, data_file=None, config_file=False, include=[str(ROOT / file) for file in self.files]
        )
        self.measured.start()
        for file in self.files:
            import_module("torqueloop." + file.removesuffix(".py").replace("/", "."))

    def lines(self) -> Iterator[str]:
        """A row of Markdown for each module: lines and branches reached, and the lines that are not."""
        if not self.files:
            return
        self.measured.stop()
        with tempfile.NamedTemporaryFile("r", suffix=".json") as file:
            self.measured.json_report(outfile=file.name)
            report = json.load(file)
        yield "| parser | targets | lines | branches | lines not reached |\n|---|---|---|---|---|"
        for name in self.files:
            found = report["files"][str(Path(name)) if name in report["files"] else str(ROOT / name)]
            n = found["summary"]
            targets = ", ".join(target for target, files in PARSERS.items() if name in files)
            lines = f"{n['covered_lines']} of {n['num_statements']}"
            branches = f"{n['covered_branches']} of {n['num_branches']}"
            yield f"| `{name}` | {targets} | {lines} | {branches} | {', '.join(_ranges(found['missing_lines']))} |"


def _ranges(numbers: list[int]) -> Iterator[str]:
    """Consecutive numbers as first-last."""
    for _, group in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        some = [number for _, number in group]
        yield f"{some[0]}-{some[-1]}" if len(some) > 1 else str(some[0])
