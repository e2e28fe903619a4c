"""Several runs of one rig as one: histograms added bucket by bucket, counters summed, the worst ticks of all.

A p99.9 of one minute rests on 60 ticks; that of ten runs of a minute on 600. What is added are the whole histograms,
never percentiles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from rich.console import Console, Group

from torqueloop.cython_kernels.histogram import Histogram
from torqueloop.hil.record.run_data import write_json_atomic
from torqueloop.hil.report import console_parts
from torqueloop.hil.report.build import Report
from torqueloop.hil.report.collect import ReportError
from torqueloop.hil.report.html_parts import number, page, section, table
from torqueloop.hil.report.latency import degraded
from torqueloop.hil.report.latency_console import timing
from torqueloop.hil.report.latency_html import real_time

TIMES = ("wake_lateness_us", "compute_us", "margin_us")
SUMS = (
    "ticks", "missed", "late_started", "dropped", "overruns", "slip_s", "minor_faults", "major_faults",
    "voluntary_switches", "involuntary_switches",
)  # fmt: skip
#: what must be the same in all runs, else their times are not comparable
SAME = ("rig", "tick_s", "clock")
WORST = 32
COLUMNS = {
    "ticks": "ticks", "missed": "missed", "slip_s": "slip s", "lateness_p99_us": "lateness p99 µs",
    "lateness_p999_us": "p99.9 µs", "lateness_max_us": "max µs", "compute_p99_us": "compute p99 µs",
    "compute_max_us": "max µs", "major_faults": "major faults", "involuntary_switches": "taken off",
}  # fmt: skip


@dataclass
class Merged:
    """Runs of one rig and their sum."""

    reports: list[Report]
    #: in the form of one run's statistics
    stats: dict[str, Any]

    @property
    def exit_status(self) -> int:
        """The worst of the runs."""
        return max(r.exit_status for r in self.reports)

    def rows(self) -> list[tuple[str, bool, list[Any]]]:
        """Per run: name, passed, figures of COLUMNS."""
        return [(r.run.path.name, r.passed, [r.metrics.get(k) for k in COLUMNS]) for r in self.reports]

    def as_dict(self) -> dict[str, Any]:
        runs = [{"path": str(r.run.path), "passed": r.passed, "exit_status": r.exit_status} for r in self.reports]
        info = {key: self.reports[0].run.info.get(key) for key in SAME}
        reasons = degraded(self.stats)
        return {"format": 1, **info, "runs": runs, "degraded": reasons, "stats": self.stats}


def merge(reports: Sequence[Report]) -> Merged:
    """Add up runs. Raises ReportError when they are not runs of one rig on one kind of clock, or a histogram is not
    whole (a killed run: its times were rebuilt from the recording)."""
    first = reports[0]
    for other in reports[1:]:
        for key in SAME:
            a, b = first.run.info.get(key), other.run.info.get(key)
            if a != b:
                raise ReportError(
                    f"{other.run.path}: {key} = {b}, but {a} in {first.run.path}: only runs of one rig can be added up"
                )
    stats: dict[str, Any] = {}
    for key in SUMS:
        values = [r.stats[key] for r in reports if r.stats.get(key) is not None]
        if values:
            stats[key] = sum(values)
    for key, choose in (("margin_min_us", min), ("overruns_in_row_max", max)):
        values = [r.stats[key] for r in reports if r.stats.get(key) is not None]
        if values:
            stats[key] = choose(values)
    for key in TIMES:
        _add(stats, key, {r.run.path: r.stats.get(key) for r in reports})
    phases = [r.stats.get("phase_us") for r in reports]
    if all(isinstance(table, Mapping) for table in phases):
        stats["phase_us"] = {}
        for name in phases[0] or {}:
            tables = {r.run.path: (r.stats["phase_us"] or {}).get(name) for r in reports}
            _add(stats["phase_us"], name, tables)
    stats["worst"] = {key: _worst(reports, key) for key in ("by_lateness", "by_compute")}
    for key in ("policy", "max_catch_up", "grace_s", "spin_us"):
        found = dict.fromkeys(r.stats.get(key) for r in reports)
        stats[key] = next(iter(found)) if len(found) == 1 else " | ".join(map(str, found))
    stats["degraded"] = [f"{r.run.path.name}: {why}" for r in reports if (why := degraded(r.stats)) is not None]
    return Merged(list(reports), stats)


def _add(into: dict[str, Any], key: str, parts: Mapping[Path, Any]) -> None:
    """One time of all runs that measured it."""
    total = Histogram()
    for path, part in parts.items():
        if not isinstance(part, Mapping):
            continue
        try:
            total.load(part)
        except (ValueError, KeyError) as error:
            raise ReportError(f"{path}: the histogram of {key} is not whole ({error}): it cannot be added up") from None
    if total.count:
        into[key] = total.summary()
        if key == "margin_us":
            into[key].update({n: total.percentile(p) / 1e3 for n, p in (("p0_1", 0.1), ("p1", 1.0))})


def _worst(reports: Sequence[Report], key: str) -> list[dict[str, Any]]:
    """The worst ticks of all runs, each with the name of its run."""
    figure = "lateness_us" if key == "by_lateness" else "compute_us"
    found = [
        {**entry, "run": r.run.path.name} for r in reports for entry in (r.stats.get("worst") or {}).get(key) or []
    ]
    return sorted(found, key=lambda entry: -float(entry[figure]))[:WORST]


def print_merged(merged: Merged, console: Console) -> None:
    """One row per run, then the time of all of them."""
    shown = console_parts.table(f"{len(merged.reports)} runs of {_title(merged)}", "run", "", *COLUMNS.values())
    for name, passed, figures in merged.rows():
        mark = "[green]pass[/]" if passed else "[bold red]FAIL[/]"
        shown.add_row(name, mark, *(console_parts.number(v) for v in figures))
    parts: list[Any] = [shown, "", timing(merged.stats) or ""]
    parts += [f"[yellow]degraded: {line}[/]" for line in merged.stats["degraded"]]
    console.print(Group(*parts))


def write_merged(merged: Merged, folder: Path) -> dict[str, Path]:
    """merged.json and merged.html in a folder that is made if need be; the files by kind."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {"json": folder / "merged.json", "html": folder / "merged.html"}
    write_json_atomic(files["json"], merged.as_dict())
    files["html"].write_text(_page(merged), encoding="utf-8")
    return files


def _title(merged: Merged) -> str:
    return str(merged.reports[0].run.info.get("rig") or "runs")


def _page(merged: Merged) -> str:
    title = f"{_title(merged)}: {len(merged.reports)} runs"
    passed = merged.exit_status == 0
    rows = []
    for name, ok, figures in merged.rows():
        mark = "<span class='ok'>pass</span>" if ok else "<span class='bad'>FAIL</span>"
        rows.append((escape(name), mark, *(number(v) for v in figures)))
    verdict = "passed" if passed else "failed"
    head = (
        f"<header><div><h1>{escape(title)} <span class='verdict {verdict}'>{verdict}</span></h1></div>"
        "<button id='theme' title='light or dark' aria-label='switch between light and dark'>◐</button></header>"
    )
    body = [
        head,
        section("Runs", table(("run", "", *COLUMNS.values()), rows, numbers=True)),
        section("Real time", real_time(merged.stats, {"tick_s": merged.reports[0].run.info.get("tick_s")})),
    ]
    return page(title, passed, body)
