"""The flat list of numbers gates can use, and the statistics rebuilt from the recording where the run left none.

Names: the path in the statistics joined with "_", a unit at the end of a table's name moved to the end of the metric:
`compute_us: {p99: ...}` is `compute_p99_us`, `can: {rx: {TCU_Status: {crc: ...}}}` is `can_rx_TCU_Status_crc`, the sum
over all messages is `can_rx_crc`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torqueloop.hil.record.run_data import Signals
from torqueloop.hil.report.analysis import Shift, column
from torqueloop.hil.report.collect import Run

_UNIT_AT_END = re.compile(r"^(.*?)_(us|ns|ms|s|J|mps|mps2|Nm|Pa|percent|Hz|bytes)$")
#: Tables of the statistics that are data for plots, not metrics.
_NO_METRIC = {"hist", "config", "command", "histogram", "buckets", "worst"}
#: Metrics from the recorded signals.
SIGNAL_METRICS = (
    "recording_gap_ticks", "recording_damage", "finite", "v_max_mps", "v_end_mps", "t_0_100_kmh_s",
    "energy_residual_rel", "energy_turned_over_J",
)  # fmt: skip
PERCENTILES = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p999": 99.9, "p9999": 99.99}


def flatten(stats: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested statistics as flat metrics."""
    flat: dict[str, Any] = {}
    for key, value in stats.items():
        if key in _NO_METRIC:
            continue
        name = _join(prefix, str(key))
        if isinstance(value, Mapping):
            flat.update(flatten(value, name))
        elif isinstance(value, bool):
            flat[name] = int(value)
        elif isinstance(value, (int, float, str)) or value is None:
            flat[name] = _number(value)
        elif isinstance(value, (list, tuple)):
            flat[name] = len(value)
    return flat


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


def _number(value: Any) -> Any:
    """JSON has no NaN: the run writes it as text."""
    if isinstance(value, str) and value.lower() in ("nan", "inf", "-inf", "infinity", "-infinity"):
        return float(value)
    return value


def histogram_us(values: NDArray[np.float64], per_decade: int = 20) -> list[list[float]]:
    """[[lower edge, count] ...] over logarithmic classes; values below 0.1 us are in the first."""
    if not len(values):
        return []
    top = max(float(values.max()), 1.0)
    n = int(np.ceil((np.log10(top) + 1.0) * per_decade)) + 1
    edges = 10.0 ** (np.arange(n + 1) / per_decade - 1.0)
    count, _ = np.histogram(np.clip(values, edges[0], edges[-1]), edges)
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


def timing_of(values: NDArray[np.float64]) -> dict[str, Any]:
    """Percentiles, maximum and histogram of times in us."""
    if not len(values):
        return {}
    found: dict[str, Any] = {k: float(np.percentile(values, p)) for k, p in PERCENTILES.items()}
    return {**found, "max": float(values.max()), "mean": float(values.mean()), "hist": histogram_us(values)}


def complete_stats(run: Run) -> tuple[dict[str, Any], list[str]]:
    """The run's statistics; for what it did not leave behind, those of the recorded ticks. Second: what was rebuilt."""
    stats = dict(run.stats)
    rebuilt: list[str] = []
    signals = run.signals
    if signals is None or not len(signals.tick):
        return stats, rebuilt
    real = str(run.info.get("clock", "real")) == "real"

    def fill(key: str, value: Any) -> None:
        if stats.get(key) is None:
            stats[key] = value
            rebuilt.append(key)

    if not run.ended and isinstance(stats.get("ticks"), int):
        stats["ticks"] = max(stats["ticks"], int(signals.tick[-1]) + 1)
    fill("ticks", int(signals.tick[-1]) + 1)
    if signals.records["compute_ns"].any():
        fill("compute_us", timing_of(signals.compute_us))
    if real:
        fill("wake_lateness_us", timing_of(signals.wake_lateness_us))
    return stats, rebuilt


def build_metrics(run: Run, stats: Mapping[str, Any], shifts: list[Shift]) -> dict[str, Any]:
    """All metrics of a run, by flat name."""
    flat = flatten(stats)
    flat.update(_can_sums(stats))
    info = run.info
    # the short name; the long one is the key of the statistics
    flat.update({k.removeprefix("wake_"): v for k, v in flat.items() if k.startswith("wake_lateness_")})
    flat["clock"] = info.get("clock")
    flat["complete"] = int(run.ended)
    flat["incomplete"] = len(run.incomplete)
    flat.setdefault("degraded", 0)
    flat["shifts"] = len(shifts)
    flat["shift_s_max"] = max((s.end_s - s.begin_s for s in shifts), default=0.0)
    flat["mode_changes"] = len(run.modes)
    flat["ticks_recorded"] = 0
    # always there, so that a gate on one that was not measured fails and is not called a slip
    flat.update(dict.fromkeys(SIGNAL_METRICS))
    flat["duration_s"] = 0.0
    flat.update({name: flat.get(name) for name in ("run_s", "real_time_factor")})
    signals = run.signals
    if signals is not None:
        flat["ticks_recorded"] = len(signals.tick)
        flat["recording_gap_ticks"] = sum(n for _, n in signals.gaps)
        flat["recording_damage"] = len(signals.damage)
        flat["duration_s"] = float(signals.t[-1]) if len(signals.tick) else 0.0
        flat.update(_driving(signals))
    flat["recording_lost"] = sum(
        int(s.get("lost_records", 0)) + int(bool(s.get("cause")))
        for s in (stats.get("recording") or {}).values()
        if isinstance(s, Mapping)
    )
    return flat


def _can_sums(stats: Mapping[str, Any]) -> dict[str, Any]:
    """can_rx_<what>: the sum over all received messages."""
    rx = (stats.get("can") or {}).get("rx")
    sums: dict[str, Any] = {}
    for counters in rx.values() if isinstance(rx, Mapping) else ():
        for key, value in counters.items() if isinstance(counters, Mapping) else ():
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                sums[f"can_rx_{key}"] = sums.get(f"can_rx_{key}", 0) + value
    return sums


def _driving(signals: Signals) -> dict[str, Any]:
    """Extremes of the drive and whether all recorded numbers are finite."""
    found: dict[str, Any] = {"finite": int(bool(np.isfinite(signals.records["out"]).all()))}
    v = column(signals, "car.v")
    if v is not None and len(v):
        found["v_max_mps"] = float(np.nanmax(v))
        found["v_end_mps"] = float(v[-1])
        above = np.flatnonzero(v >= 100 / 3.6)
        if len(above):
            found["t_0_100_kmh_s"] = float(signals.t[above[0]])
    return found
