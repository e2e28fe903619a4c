"""The flat list of numbers gates can use, and the statistics rebuilt from the recording where the run left none.

Names: the path in the tree of results joined with "_", a unit at the end of a table's name moved to the end of the
metric: `compute_us.p99` is `compute_p99_us`. Of all buses together: `can_...` (`can_rx_TCU_Status_crc`; the sum over
all messages is `can_rx_crc`), of each where there are several: `can_NAME_...`; of vehicles the same with `vehicle_`.
A metric that was not measured is None; a gate on it fails.
"""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torqueloop.hil.record.signals import Signals
from torqueloop.hil.report.analysis import Shift, column
from torqueloop.hil.report.collect import Run
from torqueloop.hil.report.shift_quality import quality_metrics
from torqueloop.hil.results.clock import Timing
from torqueloop.hil.results.links import BusStats, RxMessage, VehicleStats
from torqueloop.hil.results.run import RunInfo, RunStats

_UNIT_AT_END = re.compile(r"^(.*?)_(us|ns|ms|s|J|mps|mps2|Nm|Pa|percent|Hz|bytes)$")
#: Metrics from the recorded signals.
SIGNAL_METRICS = (
    "recording_gap_ticks", "recording_damage", "finite", "v_max_mps", "v_end_mps", "t_0_100_kmh_s",
    "energy_residual_rel", "energy_turned_over_J",
)  # fmt: skip
#: a car at or below this speed stands [m/s]; creeping away at 1 m/s2 takes 0.1 s to pass it
STANDS_MPS = 0.1
PERCENTILES = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p999": 99.9, "p9999": 99.99}
#: metrics that begin like this are counts of a participant: their names are known when it has reported them
OPEN = "participants_"
#: fields of RxMessage that are instants: of several messages the latest
INSTANTS = ("last_ok_ns",)


def flatten(value: Any, prefix: str = "", kind: Any = None) -> dict[str, Any]:
    """A dataclass (or a dictionary) of results as flat metrics. kind: its type, by which the names of a part that was
    not measured are known; they are None then."""
    if value is None:
        part = _dataclass_of(kind)
        return {prefix: None} if part is None else _flatten_fields(None, part, prefix)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _flatten_fields(value, type(value), prefix)
    if isinstance(value, Mapping):
        flat: dict[str, Any] = {}
        for key, one in value.items():
            flat.update(flatten(one, _join(prefix, str(key))))
        return flat
    if isinstance(value, bool):
        return {prefix: int(value)}
    return {prefix: len(value) if isinstance(value, (list, tuple)) else value}


def _flatten_fields(value: Any, kind: type, prefix: str) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, metric, its_kind in _fields(kind):
        one = None if value is None else getattr(value, name)
        if one is None and typing.get_origin(its_kind) is dict:
            continue
        flat.update(flatten(one, _join(prefix, metric) if metric else prefix, its_kind))
    return flat


@cache
def _fields(kind: type) -> list[tuple[str, str, Any]]:
    """(field, its name as a metric, its type) of a dataclass; without those that are none."""
    types_ = typing.get_type_hints(kind)
    found = []
    for field in dataclasses.fields(kind):
        metric = field.metadata.get("metric", field.name)
        if metric is not None:
            found.append((field.name, str(metric), types_[field.name]))
    return found


def _dataclass_of(kind: Any) -> type | None:
    """The dataclass in `X` or `X | None`."""
    kinds = typing.get_args(kind) if isinstance(kind, types.UnionType) else (kind,)
    return next((k for k in kinds if isinstance(k, type) and dataclasses.is_dataclass(k)), None)


def _join(prefix: str, key: str) -> str:
    """`compute_us`, `p99` -> `compute_p99_us`; a key with a unit of its own keeps it."""
    key = re.sub(r"\W", "_", key)
    if not prefix:
        return key
    match = _UNIT_AT_END.match(prefix)
    # A count among times has no unit.
    if match and key != "count" and not _UNIT_AT_END.match(key):
        return f"{match.group(1)}_{key}_{match.group(2)}"
    return f"{prefix}_{key}"


def _together(prefix: str, parts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Metrics of several of a kind: each under its name where there are several, and all of them together: numbers
    summed, extremes and percentiles the largest, words joined."""
    flat: dict[str, Any] = {}
    for name, part in parts.items():
        for key, value in part.items():
            if len(parts) > 1:
                flat[f"{prefix}_{re.sub(r'[^0-9A-Za-z_]', '_', name)}_{key}"] = value
            known = flat.get(f"{prefix}_{key}")
            flat[f"{prefix}_{key}"] = value if known is None else known if value is None else _both(key, known, value)
    return flat


def _both(key: str, one: Any, other: Any) -> Any:
    if isinstance(one, str) or isinstance(other, str):
        return one if one == other else f"{one} | {other}"
    return max(one, other) if re.search(r"_(max|p\d+|mean|errno|mtu|bitrate|last_ok)(_|$)", key) else one + other


def _bus(bus: BusStats) -> dict[str, Any]:
    """Metrics of one bus, with the sums over its received messages."""
    flat = flatten(bus)
    for name, _, _ in _fields(RxMessage):
        values = [getattr(message, name) for message in bus.rx.values()]
        if not isinstance(getattr(RxMessage(), name), bool):
            flat[f"rx_{name}"] = max(values, default=0) if name in INSTANTS else sum(values)
    flat["foreign_frames"] = bus.foreign_frames
    return flat


def histogram_us(values: NDArray[np.float64], per_decade: int = 20) -> list[list[float]]:
    """[[lower edge, count] ...] over logarithmic classes; values below 0.1 us are in the first."""
    if not len(values):
        return []
    top = max(float(values.max()), 1.0)
    n = int(np.ceil((np.log10(top) + 1.0) * per_decade)) + 1
    edges = 10.0 ** (np.arange(n + 1) / per_decade - 1.0)
    count, _ = np.histogram(np.maximum(values, edges[0]), edges)
    return [[float(e), int(c)] for e, c in zip(edges, count, strict=False)]


def rebinned(hist: Sequence[Sequence[float]], per_decade: int = 20) -> list[list[float]]:
    """A histogram of fine or sparse classes [[lower edge, count] ...] in even logarithmic ones, without holes."""
    points = [(max(float(edge), 0.1), int(count)) for edge, count in hist if count > 0]
    if not points:
        return []
    # The small addition keeps an edge that lies on a class border in the class above it.
    place = [int(np.floor(np.log10(edge) * per_decade + 1e-9)) for edge, _ in points]
    low, high = min(place), max(place)
    total = [0] * (high - low + 1)
    for k, (_, count) in zip(place, points, strict=True):
        total[k - low] += count
    return [[10.0 ** ((low + k) / per_decade), count] for k, count in enumerate(total)]


def timing_of(values: NDArray[np.float64]) -> Timing | None:
    """Percentiles, extremes and histogram of times in us; None without any."""
    if not len(values):
        return None
    found = {k: float(np.percentile(values, p)) for k, p in PERCENTILES.items()}
    extremes = {"min": float(values.min()), "max": float(values.max()), "mean": float(values.mean())}
    hist = [(edge, int(count)) for edge, count in histogram_us(values)]
    return Timing(len(values), **extremes, **found, negative=int((values < 0).sum()), hist=hist)


def complete_stats(run: Run) -> tuple[RunStats, list[str]]:
    """The run's statistics; for what it did not leave behind, those of the recorded ticks. Second: what was rebuilt."""
    stats = run.stats
    clock, signals = stats.clock, run.signals
    rebuilt: list[str] = []
    if signals is None or not signals.n:
        return stats, rebuilt
    recorded = int(signals.tick[-1]) + 1
    if run.info.stats is None:
        rebuilt.append("ticks")
    if not run.info.over:
        clock = dataclasses.replace(clock, ticks=max(clock.ticks, recorded))
    if clock.compute_us is None and signals.fixed("compute_ns").any():
        clock = dataclasses.replace(clock, compute_us=timing_of(signals.compute_us))
        rebuilt.append("compute_us")
    # a directory without run.json is taken for a run with deadlines
    if clock.wake_lateness_us is None and run.info.clock in ("real", ""):
        clock = dataclasses.replace(clock, wake_lateness_us=timing_of(signals.wake_lateness_us))
        rebuilt.append("wake_lateness_us")
    return dataclasses.replace(stats, clock=clock), rebuilt


def build_metrics(run: Run, stats: RunStats, shifts: list[Shift]) -> dict[str, Any]:
    """All metrics of a run, by flat name."""
    flat = flatten(stats)
    # where there is neither, the names are known all the same
    flat.update(_together("can", {name: _bus(bus) for name, bus in stats.buses.items()} or {"": _nothing(BusStats)}))
    vehicles = {name: flatten(vehicle) for name, vehicle in stats.vehicles.items()}
    flat.update(_together("vehicle", vehicles or {"": _nothing(VehicleStats)}))
    info: RunInfo = run.info
    # the short name; the long one is the key of the statistics
    flat.update({k.removeprefix("wake_"): v for k, v in flat.items() if k.startswith("wake_lateness_")})
    flat["clock"] = info.clock or None
    flat["complete"] = int(info.over)
    flat["incomplete"] = len(run.incomplete)
    flat["shifts"] = len(shifts)
    flat["shift_s_max"] = max((s.end_s - s.begin_s for s in shifts), default=0.0)
    flat["mode_changes"] = len(run.modes)
    flat["ticks_recorded"] = 0
    # always there, so that a gate on one that was not measured fails and is not called a slip
    flat.update(dict.fromkeys(SIGNAL_METRICS))
    flat.update(quality_metrics([]))
    flat["duration_s"] = 0.0
    signals = run.signals
    if signals is not None:
        flat["ticks_recorded"] = signals.n
        flat["recording_gap_ticks"] = sum(n for _, n in signals.gaps)
        flat["recording_damage"] = len(signals.damage)
        flat["duration_s"] = float(signals.t[-1]) if signals.n else 0.0
        flat.update(_driving(signals))
    # a run that left no account of its recording has not lost nothing
    flat["recording_lost"] = (
        sum(s.lost_records + int(bool(s.cause)) for s in stats.recording.values()) if stats.recording else None
    )
    return flat


def _nothing(kind: type) -> dict[str, Any]:
    """The metrics of a link that is not there."""
    flat = _flatten_fields(None, kind, "")
    if kind is BusStats:
        flat.update({f"rx_{name}": None for name, _, _ in _fields(RxMessage)} | {"foreign_frames": None})
    return flat


def _driving(signals: Signals) -> dict[str, Any]:
    """Extremes of the drive and whether all recorded numbers are finite."""
    found: dict[str, Any] = {"finite": int(signals.finite)}
    v = column(signals, "car.v")
    if v is not None and len(v):
        found["v_max_mps"] = float(np.nanmax(v))
        found["v_end_mps"] = float(v[-1])
        found["t_0_100_kmh_s"] = time_to_100_kmh(signals.t, v)
    return found


def time_to_100_kmh(t: NDArray[np.float64], v: NDArray[np.float64]) -> float | None:
    """Time from standstill to 100 km/h [s]: from the last crossing of `STANDS_MPS` before v [m/s] first reaches it,
    linear between samples. None where v does not reach it, or the record begins with a moving car."""
    above = np.flatnonzero(v >= 100.0 / 3.6)
    stands = np.flatnonzero(np.abs(v[: above[0]]) <= STANDS_MPS) if len(above) else above
    if not len(stands):
        return None

    def crossing(k: int, level: float) -> float:
        return float(t[k - 1] + (t[k] - t[k - 1]) * (level - v[k - 1]) / (v[k] - v[k - 1]))

    return crossing(int(above[0]), 100.0 / 3.6) - crossing(int(stands[-1]) + 1, STANDS_MPS)
