"""What a run says about its time, as rows for every kind of report. The words are those of docs/clock.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torqueloop.hil.results.clock import ClockStats, Grace, Timing
from torqueloop.hil.results.run import RunStats

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
    "lost_time_s": "lost s",
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


def degraded(stats: RunStats) -> str | None:
    """Why real time was not what was asked for, as one line; None: it was."""
    return "; ".join(stats.degraded) or None


def timings(clock: ClockStats) -> Iterator[tuple[str, str, Timing]]:
    """(key, name, percentiles) of wake lateness and compute time, those that were measured."""
    for key, name, timing in (
        ("wake_lateness_us", "wake lateness", clock.wake_lateness_us),
        ("compute_us", "compute time", clock.compute_us),
    ):
        if timing is not None and timing.count:
            yield key, name, timing


def _words(book: ClockStats | Grace, words: Mapping[str, str]) -> dict[str, Any]:
    values = {word: getattr(book, key, None) for key, word in words.items()}
    return {word: value for word, value in values.items() if value is not None}


def counts(clock: ClockStats) -> dict[str, Any]:
    """Counters of the clock under their words."""
    return _words(clock, COUNTS)


def clock_settings(clock: ClockStats) -> dict[str, Any]:
    """How the clock was set: policy with its limit, grace, final spin."""
    found = _words(clock, SETTINGS)
    if clock.policy != "catch_up":
        found.pop(SETTINGS["max_catch_up"], None)
    return found


def grace(clock: ClockStats) -> dict[str, Any]:
    """Counters of the start-up grace; empty when there was none."""
    if clock.grace is None or not clock.grace.ticks:
        return {}
    more = {"lateness_max_us": "largest lateness µs", "compute_max_us": "longest tick µs"}
    return _words(clock.grace, {**COUNTS, **more})


def phases(clock: ClockStats) -> list[tuple[str, Timing, float]]:
    """(phase, percentiles, share of the mean tick) in their order; empty when they were not measured."""
    rows = [(name, clock.phase_us[name]) for name in PHASES if name in clock.phase_us]
    total = sum(row.mean for _, row in rows)
    return [(name, row, row.mean / total if total > 0 else 0.0) for name, row in rows]
