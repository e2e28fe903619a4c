"""What a run says about its time, as rows for every kind of report. The words are those of docs/clock.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

#: phases of a tick in their order
PHASES = ("latch", "inputs", "step", "outputs", "tx", "publish")
#: statistics -> words, in the order they are shown
COUNTS = {
    "ticks": "ticks",
    "missed": "missed",
    "late_started": "started late",
    "dropped": "dropped",
    "overruns": "overruns",
    "overruns_in_row_max": "overruns in a row",
    "slip_s": "slip s",
    "margin_min_us": "smallest margin µs",
    "minor_faults": "minor page faults",
    "major_faults": "major page faults",
    "voluntary_switches": "switches (sleep)",
    "involuntary_switches": "switches (taken off)",
}
#: of these, what is worth a place on the terminal only if it is not 0
DETAILS = {"started late", "dropped", "overruns in a row", "switches (sleep)"}
SETTINGS = {"policy": "policy", "max_catch_up": "max catch-up", "grace_s": "grace s", "spin_us": "final spin µs"}
#: columns of the table of worst ticks after tick, lateness, compute, margin and the phases
USAGE = {
    "minor_faults": "minor faults",
    "major_faults": "major faults",
    "voluntary_switches": "sleeps",
    "involuntary_switches": "taken off",
}


def degraded(stats: Mapping[str, Any]) -> str | None:
    """Why real time was not what was asked for, as one line; None: it was."""
    reasons = stats.get("degraded") or []
    return "; ".join(str(reason) for reason in reasons) or None


def timings(stats: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """(key, name, percentiles) of wake lateness and compute time, those that were measured."""
    for key, name in (("wake_lateness_us", "wake lateness"), ("compute_us", "compute time")):
        timing = stats.get(key)
        if isinstance(timing, Mapping) and timing.get("p50") is not None:
            yield key, name, timing


def counts(stats: Mapping[str, Any]) -> dict[str, Any]:
    """Counters of the clock under their words."""
    return {word: stats[key] for key, word in COUNTS.items() if stats.get(key) is not None}


def clock_settings(stats: Mapping[str, Any]) -> dict[str, Any]:
    """How the clock was set: policy with its limit, grace, final spin."""
    found = {word: stats[key] for key, word in SETTINGS.items() if stats.get(key) is not None}
    if stats.get("policy") != "catch_up":
        found.pop(SETTINGS["max_catch_up"], None)
    return found


def grace(stats: Mapping[str, Any]) -> dict[str, Any]:
    """Counters of the start-up grace; empty when there was none."""
    book = stats.get("grace")
    if not isinstance(book, Mapping) or not book.get("ticks"):
        return {}
    more = {"lateness_max_us": "largest lateness µs", "compute_max_us": "longest tick µs"}
    return {word: book[key] for key, word in {**COUNTS, **more}.items() if book.get(key) is not None}


def phases(stats: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any], float]]:
    """(phase, percentiles, share of the mean tick) in their order; empty when they were not measured."""
    table = stats.get("phase_us")
    if not isinstance(table, Mapping):
        return []
    rows = [(name, table[name]) for name in PHASES if isinstance(table.get(name), Mapping)]
    total = sum(row["mean"] for _, row in rows)
    return [(name, row, row["mean"] / total if total > 0 else 0.0) for name, row in rows]


def worst(stats: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """The worst ticks "by_lateness" or "by_compute", worst first."""
    found = (stats.get("worst") or {}).get(key) or []
    return [entry for entry in found if isinstance(entry, Mapping)]


def tick_name(entry: Mapping[str, Any]) -> str:
    """Step number of a worst tick, after the name of its run where there are several."""
    return " ".join(str(entry[key]) for key in ("run", "tick") if entry.get(key) is not None)


def longest_phase(entry: Mapping[str, Any]) -> str:
    """Where most of a tick's time went."""
    table = entry.get("phase_us") or {}
    return max(table, key=lambda name: table[name]) if table else ""
