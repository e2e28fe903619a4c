"""Numbers taken of a run: from one signal, from other numbers, or by a function of the user's own."""

from __future__ import annotations

import importlib.util
import math
import os
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError, RangeError, TorqueloopError, UnknownNameError, did_you_mean
from torqueloop.core.describe.units import SYMBOLS, UNITS, to_si
from torqueloop.hil.results.gates import Expression, compute
from torqueloop.hil.study.study_tables import Metric

Array = NDArray[np.float64]
#: what a function of the user's own is: the run -> a number
Function = Callable[[Any], float]


class Signals(Protocol):
    """What was run: signals in SI by name, and their times."""

    @property
    def time(self) -> Array: ...
    @property
    def units(self) -> Mapping[str, str]: ...
    def __getitem__(self, name: str) -> Array: ...
    def __contains__(self, name: object) -> bool: ...


class MetricError(TorqueloopError):
    """A function of the user's own failed."""


@dataclass(frozen=True)
class Measure:
    """A metric, ready to be taken."""

    name: str
    metric: Metric
    expression: Expression | None = None
    #: gives the user's function; it is called when the first run is measured: checking a file executes nothing of it
    function: Callable[[], Function] | None = None

    def of(self, run: Signals, before: Mapping[str, Any]) -> float:
        """Its value; NaN if it is not known. before: the metrics that are known already."""
        if self.expression is not None:
            return self.expression(before)
        if self.function is not None:
            try:
                return float(self.function()(run))
            except TorqueloopError:
                raise
            except Exception as error:  # whatever the user's function raises
                raise MetricError(f"metric {self.name}: {type(error).__name__}: {error}") from error
        assert self.metric.signal is not None
        return taken(run, self.metric) / factor(self.metric, run.units, self.name)


def measures(metrics: Mapping[str, Metric], folder: Path, functions: Mapping[str, Function]) -> list[Measure]:
    """All metrics of a study in their order; ConfigError names the one that cannot be read."""
    found = []
    for name, metric in metrics.items():
        try:
            if metric.value is not None:
                found.append(Measure(name, metric, expression=compute(metric.value)))
            elif metric.python is not None:
                found.append(Measure(name, metric, function=_function(metric.python, folder, functions)))
            else:
                found.append(Measure(name, metric))
        except ConfigError as error:
            raise error.located(table=f"metrics.{name}", key="value") from None
    return found


def _function(text: str, folder: Path, functions: Mapping[str, Function]) -> Callable[[], Function]:
    """ "FILE.py:FUNCTION" as written in a file of `folder`, or one that was handed over; read when it is called for."""
    if text in functions:
        return lambda: functions[text]
    file, _, name = text.rpartition(":")
    path = folder / file
    if not file or not os.path.isfile(path):
        raise ConfigError("{key} = {value}: no such file", key="python", value=text, allowed="FILE.py:FUNCTION")
    return cache(lambda: _read(path, name, text))


def _read(path: Path, name: str, text: str) -> Function:
    spec = importlib.util.spec_from_file_location(f"torqueloop_study_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever the user's file raises
        raise ConfigError(f"{{key}} = {{value}}: {type(error).__name__}: {error}", key="python", value=text) from error
    function = getattr(module, name, None)
    if not callable(function):
        raise ConfigError("{key} = {value}: no such function", key="python", value=text,
                          hint=did_you_mean(name, vars(module)))  # fmt: skip
    return function  # type: ignore[no-any-return]


def check(found: list[Measure], run: Signals, before: Mapping[str, Any]) -> None:
    """Every signal and unit is there, as seen in a first run; ConfigError otherwise."""
    known = dict(before)
    for measure in found:
        signal, place = measure.metric.signal, f"metrics.{measure.name}"
        if signal is not None and signal not in run:
            raise UnknownNameError("{key} = {value}: there is no such signal", table=place, key="signal", value=signal,
                                   hint=did_you_mean(signal, run.units))  # fmt: skip
        if signal is not None:
            factor(measure.metric, run.units, measure.name)
            if not len(_window(run, measure.metric)[0]):
                raise RangeError("{key} = {value} is after the end", table=place, key="from_s",
                                 value=measure.metric.from_s, allowed=f"<= {run.time[-1]:g}")  # fmt: skip
        if measure.expression is not None:
            for name in measure.expression.names:
                if name not in known:
                    raise UnknownNameError("{value} is no metric above this one", table=place, key="value", value=name,
                                           hint=did_you_mean(name, known))  # fmt: skip
        known[measure.name] = 0.0


def factor(metric: Metric, units: Mapping[str, str], name: str) -> float:
    """Size of the unit of a metric in SI."""
    if not metric.unit:
        return 1.0
    assert metric.signal is not None
    symbol = units[metric.signal]
    known = [unit for unit, (dimension, _) in UNITS.items() if SYMBOLS[dimension] == symbol]
    if metric.unit not in known:
        raise RangeError(f"{{key}} = {{value}} is no unit of {metric.signal}", table=f"metrics.{name}", key="unit",
                         value=metric.unit, allowed=", ".join(known) or "none")  # fmt: skip
    return to_si(1.0, metric.unit)


def _window(run: Signals, metric: Metric) -> tuple[Array, Array]:
    """(time, values) from from_s to until_s, both included."""
    t = run.time
    first = int(np.searchsorted(t, metric.from_s - 1e-9))
    last = len(t) if metric.until_s is None else int(np.searchsorted(t, metric.until_s + 1e-9, side="right"))
    return t[first:last], run[str(metric.signal)][first:last]


def taken(run: Signals, metric: Metric) -> float:
    """The number of a signal, SI (`extremes`: a count)."""
    t, y = _window(run, metric)
    if not len(y):
        return math.nan
    simple: dict[str, Callable[[], Any]] = {
        "min": lambda: y.min(), "max": lambda: y.max(), "mean": lambda: y.mean(),
        "rms": lambda: np.sqrt(np.mean(y * y)), "std": lambda: y.std(), "range": lambda: np.ptp(y),
        "first": lambda: y[0], "last": lambda: y[-1],
        "integral": lambda: np.trapezoid(y, t),
        "steepest": lambda: np.abs(np.diff(y) / np.diff(t)).max() if len(y) > 1 else math.nan,
        "reverse": lambda: max(0.0, float((-np.sign(_first_sign(y)) * y).max())),
        "extremes": lambda: float(extremes(y, float(metric.prominence or 0.0))),
    }  # fmt: skip
    return float(simple[metric.take]())


def _first_sign(y: Array) -> float:
    beginning = y[np.flatnonzero(y)[:1]]
    return float(beginning[0]) if len(beginning) else 1.0


def extremes(y: Array, prominence: float) -> int:
    """Turning points of a curve that lie at least `prominence` apart: what remains when smaller to and fro is left
    out (a hysteresis of that width). A monotonous curve has 0, one hump 1, a dip and a hump 2."""
    found, direction, turning = 0, 0, float(y[0])
    for value in map(float, _corners(y)):
        if direction >= 0 and value > turning or direction <= 0 and value < turning:
            if direction == 0 and abs(value - float(y[0])) < prominence:
                continue
            direction, turning = direction or (1 if value > turning else -1), value
        elif direction and abs(value - turning) >= prominence:
            found, direction, turning = found + 1, -direction, value
    return found


def _corners(y: Array) -> Array:
    """The points at which a curve turns, and its ends."""
    slope = np.sign(np.diff(y))
    kept = np.flatnonzero(np.diff(slope) != 0) + 1
    return np.concatenate([y[:1], y[kept], y[-1:]])
