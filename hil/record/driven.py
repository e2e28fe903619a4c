"""What was driven in a run, as a scenario that drives it again: every signal of the driver, tick by tick.

A change between two ticks becomes a step half a tick earlier, so the scenario gives each tick the recorded value to
the bit. Parameters, faults and other signals that a client has changed are not in it: `torqueloop replay` repeats them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.common.locate import locate
from torqueloop.hil.record.run_data import read_signals
from torqueloop.hil.record.signals import Signals
from torqueloop.hil.results.files import read_run_info
from torqueloop.hil.results.run import RunInfo

#: tables of the overrides of a run that the scenario replaces
_OWN = ("driver", "steps", "gates", "rig")


@dataclass(frozen=True)
class Driven:
    """A scenario file that was written."""

    path: Path
    #: recorded time that it repeats [s]
    seconds: float
    #: changes of signals in it
    changes: int


def save_driven(run_dir: Path | str, target: Path | str) -> Driven:
    """Write what the driver did in a run, which may still go on, as a scenario file. ConfigError where the run has no
    rig, no recorded driver, or a recording with gaps."""
    run_dir, target = Path(run_dir), Path(target)
    info, signals = read_run_info(run_dir), read_signals(run_dir)
    if info is None or info.rig_file is None:
        raise ConfigError("{value} is no run of a rig", key="DIR", value=str(run_dir), allowed="the directory of a run")
    names = [name for name in signals.names if name.startswith("driver.")]
    if not signals.n:
        raise ConfigError("{value} holds no samples yet", key="DIR", value=str(run_dir), hint="try again in a second")
    if not names:
        raise ConfigError("{value} has no recorded signal of the driver", key="DIR", value=str(run_dir),
                          allowed='a rig file whose [record] signals contain "driver.*"')  # fmt: skip
    if signals.gaps or (np.diff(signals.tick) != 1).any() or signals.tick[0] != 0:
        raise ConfigError("{value} is not recorded tick by tick from its start", key="DIR", value=str(run_dir),
                          allowed="a run with [record] every = 1, without gaps and without a restored checkpoint",
                          hint="torqueloop replay repeats it")  # fmt: skip
    tables = {name.removeprefix("driver."): _points(signals[name], signals.tick_s) for name in names}
    target.write_text(_text(info, _rig_of(info, run_dir, target), signals, tables), encoding="utf-8")
    return Driven(target, signals.n * signals.tick_s, sum(len(p) // 2 for p in tables.values()))


def _points(y: NDArray[np.float64], tick_s: float) -> list[list[float]]:
    """[t_s, value] of a driver table that has the value y[k] in tick k."""
    points = [[0.0, float(y[0])]]
    for k in np.flatnonzero(np.diff(y)) + 1:
        at = (int(k) - 0.5) * tick_s
        points += [[at, float(y[k - 1])], [at, float(y[k])]]
    return points


def _rig_of(info: RunInfo, run_dir: Path, target: Path) -> str:
    """The installed rig of this name where it is the one that ran, else the copy in the run directory."""
    copy = run_dir / str(info.rig_file)
    try:
        if locate(copy.stem, "rigs").read_bytes() == copy.read_bytes():
            return copy.stem
    except (ConfigError, OSError):
        pass
    return Path(os.path.relpath(copy, target.resolve().parent)).as_posix()


def _text(info: RunInfo, rig: str, signals: Signals, tables: dict[str, list[list[float]]]) -> str:
    changed: dict[str, Any] = {k: v for k, v in info.overrides.items() if k.partition(".")[0] not in _OWN}
    lines = [
        f"# What the driver did in the run {info.started} of {info.rig}, value by value.",
        "# Parameters, faults and other signals that were changed during the run are not in this file.",
        "",
        'kind = "scenario"',
        "[scenario]",
        'name = "driven"',
        f"rig = {toml_value(rig)}",
        f"duration_s = {signals.n * signals.tick_s!r}",
        "",
        "[driver]",
        *(f"{toml_value(name)} = {toml_value(points)}" for name, points in tables.items()),
    ]
    if changed:
        lines += ["", "[set]", *(f"{toml_value(k)} = {toml_value(v)}" for k, v in changed.items())]
    return "\n".join(lines) + "\n"


def toml_value(value: Any) -> str:
    """A value as TOML writes it in a line."""
    if value is None:
        raise ConfigError("a run that took a key of its rig file away cannot be written as a scenario", key="set")
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{toml_value(str(k))} = {toml_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    return json.dumps(value)
