"""Inputs of a model over time, as a file gives them: keys with units; constants, points or sources.

"C4.p_bar" = 12.0
"engine.pedal" = [[0.0, 0.0], [0.5, 0.0], [0.7, 1.0]]
"motor.tau_Nm" = { kind = "Sine", amplitude = 3.0, f = 0.8 }
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from typing import Any

from torqueloop.core import signals as sources
from torqueloop.core.describe.errors import (
    ConfigError,
    MissingValueError,
    RangeError,
    UnknownKeyError,
    UnknownNameError,
    did_you_mean,
)
from torqueloop.core.describe.units import SYMBOLS, keys_of

#: values of a source that carry the unit of the input, the rest are times, frequencies, percents
_SCALED = {"k", "height", "amplitude", "offset"}
#: SI unit of an input -> dimension of core/describe/units.py
_DIMENSION = {symbol: dimension for dimension, symbol in SYMBOLS.items()}


def inputs_over_time(
    given: Mapping[str, Any],
    units: Mapping[str, str],
    file: str,
    table: str = "inputs",
    owner: str = "the powertrain",
    ranges: Mapping[str, tuple[float, float]] | None = None,
    optional: Collection[str] = (),
) -> dict[str, sources.Signal]:
    """Each key matched with an input (name -> SI unit), its values converted to SI. ConfigError with file, table, key:
    a key that is none, without its unit or twice, a value outside `ranges`, an input that is not there nor optional."""
    keys: dict[str, tuple[str, float]] = {}
    for name, unit in units.items():
        for key, factor in keys_of(name, _DIMENSION[unit]).items():
            keys[key] = (name, float(factor))
    found: dict[str, sources.Signal] = {}
    for key, value in given.items():
        if key == "source":
            continue
        if key in units and key not in keys:
            wanted = [k for k, (name, _) in keys.items() if name == key]
            raise UnknownKeyError(
                "'{key}' needs its unit", file=file, table=table, key=key, value=value, allowed=", ".join(wanted)
            )
        if key not in keys:
            raise UnknownNameError(
                f"{owner} has no input '{{key}}'",
                file=file,
                table=table,
                key=key,
                hint=did_you_mean(key, [*keys, "source"]),
            )
        name, factor = keys[key]
        if name in found:
            raise ConfigError(f"input {name} is given twice", file=file, table=table, key=key)
        try:
            found[name] = signal_of(value, factor)
            _in_range(found[name], (ranges or {}).get(name), value)
        except ConfigError as error:
            error.problem = error.problem if "{key}" in error.problem else f"'{{key}}': {error.problem}"
            raise error.located(file=file, table=table, key=key) from None
    missing = [n for n in units if n not in found and n not in optional]
    if missing:
        raise MissingValueError(
            f"no value for {', '.join(missing)}", file=file, table=table, hint="an input that is not used is 0.0"
        )
    return found


def _in_range(signal: sources.Signal, allowed: tuple[float, float] | None, value: Any) -> None:
    """RangeError for a constant, or a point of a table, that the law of the input is not made for."""
    if allowed is None or not isinstance(value, (int, float, list)):
        return
    times = [row[0] for row in value] if isinstance(value, list) else [0.0]
    wrong = [x for t in times for x in (signal.before(t), signal.after(t)) if not allowed[0] <= x <= allowed[1]]
    if wrong:
        raise RangeError("{key} = {value} is out of range", value=wrong[0], allowed=f"{allowed[0]:g} .. {allowed[1]:g}")


def signal_of(value: Any, factor: float) -> sources.Signal:
    """A constant, points, or {kind = ..., parameters}."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return sources.Constant(value * factor)
    if isinstance(value, list):
        rows = [row if isinstance(row, list) and all(_is_number(v) for v in row) else [] for row in value]
        return sources.Table([[row[0], row[1] * factor] if len(row) == 2 else row for row in rows])
    if isinstance(value, dict):
        kinds = {c.__name__: c for c in (sources.Constant, sources.Step, sources.Ramp, sources.Sine, sources.Pulse)}
        given = dict(value)
        kind = given.pop("kind", None)
        if kind not in kinds:
            raise ConfigError("no source of kind {value}", value=kind, allowed=", ".join(kinds))
        known = list(inspect.signature(kinds[kind]).parameters)
        for name, number in given.items():
            if name not in known:
                raise UnknownKeyError(f"{kind} has no parameter {name!r}", hint=did_you_mean(name, known))
            if not _is_number(number):
                raise ConfigError(f"{kind}: {name} is not a number", value=number, allowed="a number")
        scaled: dict[str, Any] = {n: float(v) * (factor if n in _SCALED else 1.0) for n, v in given.items()}
        # Pulse counts its periods.
        scaled = {n: int(v) if n == "nperiod" else v for n, v in scaled.items()}
        return kinds[kind](**scaled)
    raise ConfigError("{key} = {value} is no input", value=value, allowed="a number, [[t_s, value], ...], {kind = ...}")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
