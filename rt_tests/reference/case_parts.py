"""Cases of the schema case/1 made in a test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from torqueloop.core.reference import Case, Column


def part(name: str, domain: str, kind: str, **parameters: Any) -> dict[str, Any]:
    return {"name": name, "domain": domain, "kind": kind,
            "parameters": {k: v if isinstance(v, dict) else {"value": v} for k, v in parameters.items()}}  # fmt: skip


def a_case(
    *parts: dict[str, Any], flange: Any = (), heat: Any = (), signal: Any = (), frame: Any = (), start: Any = (),
    columns: tuple[Column, ...] = (), stop: float = 0.5,
) -> Case:  # fmt: skip
    """A case without a reference of its own: zeros in its columns."""
    connections = {"flange": [*flange], "heat": [*heat], "signal": [*signal], "frame": [*frame]}
    time = np.array([0.0, stop])
    values = np.zeros((2, len(columns)))
    return Case("test", Path("test"), 0.0, stop, list(parts), connections, dict(start), columns, time, values, (), 1e9)
