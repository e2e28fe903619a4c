"""torqueloop: a real-time powertrain that a transmission control unit believes in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torqueloop.core import components
from torqueloop.core.driveline import Driveline, load
from torqueloop.core.errors import CompileError, ConfigError, TorqueloopError

if TYPE_CHECKING:
    from torqueloop.core.offline import Simulation
    from torqueloop.core.results import Result
    from torqueloop.hil.control.client import connect

__version__ = "0.1.0"

__all__ = [
    "CompileError",
    "ConfigError",
    "Driveline",
    "Result",
    "Simulation",
    "TorqueloopError",
    "components",
    "connect",
    "load",
]


def __getattr__(name: str) -> Any:
    """Imported when first used: checking a file must not need the compiled kernels, nor sockets."""
    if name == "Simulation":
        from torqueloop.core.offline import Simulation

        return Simulation
    if name == "Result":
        from torqueloop.core.results import Result

        return Result
    if name == "connect":
        from torqueloop.hil.control.client import connect

        return connect
    raise AttributeError(f"module 'torqueloop' has no attribute {name!r}")
