"""Several runs of one rig as one: histograms added bucket by bucket, counters summed, the worst ticks of all.

A p99.9 of one minute rests on 60 ticks; that of ten runs of a minute on 600. What is added are the whole histograms,
never percentiles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console, Group
from rich.text import Text

from torqueloop.core.describe.classes import dataclass
from torqueloop.cython_kernels.clock.histogram import Histogram
from torqueloop.hil.report import console_parts
from torqueloop.hil.report.collect import ReportError
from torqueloop.hil.report.latency import degraded
from torqueloop.hil.report.latency_console import timing
from torqueloop.hil.report.latency_html import real_time
from torqueloop.hil.report.pages import render
from torqueloop.hil.report.report import Report
from torqueloop.hil.results.clock import ClockStats, Margin, Timing, WorstTick, WorstTicks
from torqueloop.hil.results.files import VERSION, plain, write_json_atomic
from torqueloop.hil.results.run import RunStats
from torqueloop.hil.views.figure import Figures

SomeTiming = TypeVar("SomeTiming", bound=Timing)

TIMES = ("wake_lateness_us", "compute_us")
SUMS = (
    "ticks", "missed", "late_started", "dropped", "overruns", "lost_time_s", "minor_faults", "major_faults",
    "voluntary_switches", "involuntary_switches",
)  # fmt: skip
#: how the clock was set: shown where it is the same in all runs
SETTINGS = ("policy", "max_catch_up", "grace_s", "spin_us")
#: what must be the same in all runs, else their times are not comparable
SAME = ("rig", "tick_s", "clock")
WORST = 32
COLUMNS = {
    "ticks": "ticks", "missed": "missed", "lost_time_s": "lost s", "lateness_p99_us": "lateness p99 µs",
    "lateness_p999_us": "p99.9 µs", "lateness_max_us": "max µs", "compute_p99_us": "compute p99 µs",
    "compute_max_us": "max µs", "major_faults": "major faults", "involuntary_switches": "taken off",
}  # fmt: skip


@dataclass
class Merged:
    """Runs of one rig and their sum."""

    reports: list[Report]
    #: in the form of one run's statistics: those of the clock, and the reasons for which real time was degraded
    stats: RunStats

    @property
    def exit_status(self) -> int:
        """The worst of the runs."""
        return max(r.exit_status for r in self.reports)

    def rows(self) -> list[tuple[str, bool, list[Any]]]:
        """Per run: name, passed, figures of COLUMNS."""
        return [(r.run.path.name, r.passed, [r.metrics.get(k) for k in COLUMNS]) for r in self.reports]

    def as_dict(self) -> dict[str, Any]:
        """As it is written."""
        runs = [{"path": str(r.run.path), "passed": r.passed, "exit_status": r.exit_status} for r in self.reports]
        same = {key: getattr(self.reports[0].run.info, key) for key in SAME}
        made = plain({**same, "runs": runs, "degraded": degraded(self.stats), "stats": self.stats})
        return {"format": VERSION, **made}


def merge(reports: Sequence[Report]) -> Merged:
    """Add up runs. Raises ReportError when they are not runs of one rig on one kind of clock, or a histogram is not
    whole (a killed run: its times were rebuilt from the recording)."""
    first = reports[0]
    for other in reports[1:]:
        for key in SAME:
            a, b = getattr(first.run.info, key), getattr(other.run.info, key)
            if a != b:
                raise ReportError(
                    f"{other.run.path}: {key} = {b}, but {a} in {first.run.path}: only runs of one rig can be added up"
                )
    clocks = {r.run.path: r.stats.clock for r in reports}
    found: dict[str, Any] = {}
    for keys, choose in ((SUMS, sum), (("margin_min_us",), min), (("overruns_in_row_max",), max)):
        for key in keys:
            values = [value for c in clocks.values() if (value := getattr(c, key)) is not None]
            if values:
                found[key] = choose(values)
    for key in TIMES:
        found[key] = _added(key, {path: getattr(c, key) for path, c in clocks.items()}, Timing)
    found["margin_us"] = _added("margin_us", {path: c.margin_us for path, c in clocks.items()}, Margin)
    if all(c.phase_us for c in clocks.values()):
        found["phase_us"] = {
            name: total
            for name in first.stats.clock.phase_us
            if (total := _added(name, {p: c.phase_us.get(name) for p, c in clocks.items()}, Timing)) is not None
        }
    for key in SETTINGS:
        values = list(dict.fromkeys(getattr(c, key) for c in clocks.values()))
        found[key] = values[0] if len(values) == 1 else None
    by_lateness = _worst(reports, lambda w: w.by_lateness, lambda e: e.lateness_us)
    found["worst"] = WorstTicks(by_lateness, _worst(reports, lambda w: w.by_compute, lambda e: e.compute_us))
    reasons = [f"{r.run.path.name}: {why}" for r in reports if (why := degraded(r.stats)) is not None]
    return Merged(list(reports), RunStats(ClockStats(**found), degraded=reasons))


def _added(key: str, parts: Mapping[Path, Timing | None], kind: type[SomeTiming]) -> SomeTiming | None:
    """One time of all runs that measured it."""
    total = Histogram()
    for path, part in parts.items():
        if part is None:
            continue
        try:
            total.load(vars(part))
        except (ValueError, KeyError) as error:
            raise ReportError(f"{path}: the histogram of {key} is not whole ({error}): it cannot be added up") from None
    if not total.count:
        return None
    low: dict[str, Any] = (
        {n: total.percentile(p) / 1e3 for n, p in (("p0_1", 0.1), ("p1", 1.0))} if kind is Margin else {}
    )
    return kind(**total.summary(), **low)


def _worst(
    reports: Sequence[Report], pick: Callable[[WorstTicks], list[WorstTick]], figure: Callable[[WorstTick], float]
) -> list[WorstTick]:
    """The worst ticks of all runs, each with the name of its run."""
    found = [replace(entry, run=r.run.path.name) for r in reports for entry in pick(r.stats.clock.worst)]
    return sorted(found, key=lambda entry: -figure(entry))[:WORST]


def print_merged(merged: Merged, console: Console) -> None:
    """One row per run, then the time of all of them."""
    shown = console_parts.table(f"{len(merged.reports)} runs of {_title(merged)}", "run", "", *COLUMNS.values())
    for name, passed, figures in merged.rows():
        mark = Text("pass", "green") if passed else Text("FAIL", "bold red")
        shown.add_row(name, mark, *(console_parts.number(v) for v in figures))
    parts: list[Any] = [shown, "", timing(merged.stats.clock) or ""]
    parts += [Text(f"degraded: {line}", "yellow") for line in merged.stats.degraded]
    console.print(Group(*parts))


def write_merged(merged: Merged, folder: Path) -> dict[str, Path]:
    """merged.json and merged.html in a folder that is made if need be; the files by kind."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {"json": folder / "merged.json", "html": folder / "merged.html"}
    write_json_atomic(files["json"], merged.as_dict())
    files["html"].write_text(_page(merged), encoding="utf-8")
    return files


def _title(merged: Merged) -> str:
    return merged.reports[0].run.info.rig or "runs"


def _page(merged: Merged) -> str:
    runs = [{"name": name, "passed": ok, "figures": numbers} for name, ok, numbers in merged.rows()]
    figures = Figures()
    time = real_time(merged.stats, merged.reports[0].run.info.tick_s, [], figures)
    title = f"{_title(merged)}: {len(merged.reports)} runs"
    columns = list(COLUMNS.values())
    return render("merged.html", title, merged.exit_status == 0, figures, runs=runs, columns=columns, time=time)
