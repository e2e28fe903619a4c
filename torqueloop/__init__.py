"""torqueloop: simulates an automatic gearbox, its engine and its car in real time for a transmission control unit.

    load(FILE)                  a driveline from TOML, or by the bare name of an installed one
    Simulation(driveline, h)    an offline simulation with the step of a rig
    run(RIG, ...)               run a rig; gives a RecordedRun
    read_run(DIR)               statistics, signals and verdict of a run
    compare(A, B)               the differences between two runs
    animate(RUN, FILE)          a page that shows a run in three dimensions
    sweep(FILE, ...)            a study: many runs with other values, on many processors
    connect(ENDPOINT)           the control channel of a running rig

docs/python.md has examples of each.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torqueloop.core import components
    from torqueloop.core.compile.compiler import compile_driveline
    from torqueloop.core.components.files import load
    from torqueloop.core.describe.driveline import Driveline
    from torqueloop.core.describe.errors import CompileError, ConfigError, TorqueloopError
    from torqueloop.core.simulate.offline import Simulation
    from torqueloop.core.simulate.results import Result
    from torqueloop.core.simulate.run import Run
    from torqueloop.hil.animate.animate import animate
    from torqueloop.hil.control.client import connect
    from torqueloop.hil.runs.compare import Comparison, compare
    from torqueloop.hil.runs.recorded_run import RecordedRun, read_run, run
    from torqueloop.hil.study.result import StudyResult, sweep

__version__ = "0.2.0"

__all__ = [
    "Comparison",
    "CompileError",
    "ConfigError",
    "Driveline",
    "RecordedRun",
    "Result",
    "Run",
    "Simulation",
    "StudyResult",
    "TorqueloopError",
    "animate",
    "compare",
    "compile_driveline",
    "components",
    "connect",
    "load",
    "read_run",
    "run",
    "sweep",
]

#: name -> module it is in. Imported when first used: checking a file must not need the compiled kernels, nor sockets,
#: and the process of a vehicle model no components
_LATER = {
    "Comparison": "torqueloop.hil.runs.compare",
    "CompileError": "torqueloop.core.describe.errors",
    "ConfigError": "torqueloop.core.describe.errors",
    "Driveline": "torqueloop.core.describe.driveline",
    "RecordedRun": "torqueloop.hil.runs.recorded_run",
    "Result": "torqueloop.core.simulate.results",
    "Run": "torqueloop.core.simulate.run",
    "Simulation": "torqueloop.core.simulate.offline",
    "StudyResult": "torqueloop.hil.study.result",
    "TorqueloopError": "torqueloop.core.describe.errors",
    "animate": "torqueloop.hil.animate.animate",
    "compare": "torqueloop.hil.runs.compare",
    "compile_driveline": "torqueloop.core.compile.compiler",
    "components": "torqueloop.core.components",
    "connect": "torqueloop.hil.control.client",
    "load": "torqueloop.core.components.files",
    "read_run": "torqueloop.hil.runs.recorded_run",
    "run": "torqueloop.hil.runs.recorded_run",
    "sweep": "torqueloop.hil.study.result",
}


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'torqueloop' has no attribute {name!r}")
    module = importlib.import_module(_LATER[name])
    found = module if name == "components" else getattr(module, name)
    globals()[name] = found
    return found
