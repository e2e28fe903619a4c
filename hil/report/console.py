"""The report on the terminal: what ran, how real its time was, what happened, what passed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from torqueloop.hil.report.metrics import rebinned

if TYPE_CHECKING:
    from torqueloop.hil.report.build import Report

BLOCKS = " ▁▂▃▄▅▆▇█"
#: counters of a received message that say nothing at the end of a run
HIDDEN = {"timed_out", "seen", "last_ok_ns"}


def sparkline(hist: Sequence[Sequence[float]], width: int = 28) -> str:
    """A histogram with logarithmic classes as one line; the height is the logarithm of the count."""
    per_decade = 20
    while True:
        count = np.array([c for _, c in rebinned(hist, per_decade)], dtype=float)
        if len(count) <= width or per_decade == 1:
            break
        per_decade -= 1
    if not len(count):
        return ""
    level = np.log10(count + 1)
    height = np.where(count > 0, np.maximum(np.ceil(level / level.max() * (len(BLOCKS) - 1)), 1), 0).astype(int)
    return "".join(BLOCKS[k] for k in height)


def _table(title: str, *columns: str, box: Any = None) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=box, pad_edge=False, show_edge=False)
    for k, name in enumerate(columns):
        table.add_column(name, justify="left" if k == 0 else "right", header_style="dim")
    return table


def _number(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace(",", " ")
    if isinstance(value, float):
        return f"{value:,.1f}".replace(",", " ") if 0.1 <= abs(value) < 1e6 else f"{value:.3g}"
    return str(value)


def print_report(report: Report, console: Console | None = None) -> None:
    """All tables, most important first and last."""
    console = console or Console()
    parts = [
        _head(report),
        _timing(report),
        _shifts(report),
        _can(report),
        _flat("vehicle link", report.stats.get("vehicle")),
        _flat("solver", report.stats.get("solver")),
        _energy(report),
        _judgement(report),
    ]
    for part in parts:
        if part is not None:
            console.print(part)
            console.print()


def _head(report: Report) -> RenderableType:
    info, metrics = report.run.info, report.metrics
    verdict = Text(" PASSED ", "bold white on green") if report.passed else Text(" FAILED ", "bold white on red")
    line = Text.assemble(verdict, "  ", (str(info.get("rig") or report.run.path.name), "bold"), "  ")
    words = [
        f"{info['powertrain']}" if info.get("powertrain") else "",
        f"{metrics.get('clock') or 'unknown'} clock",
        f"{_number(metrics.get('ticks'))} ticks",
        f"{metrics.get('duration_s', 0.0):.3f} s",
        f"{metrics['real_time_factor']:.0f} × real time" if metrics.get("real_time_factor") else "",
    ]
    line.append(" · ".join(w for w in words if w))
    rows: list[RenderableType] = [line]
    if metrics.get("hash") is not None and report.run.ended:
        rows.append(Text(f"state hash {metrics['hash']}", "dim"))
    rows += [Text(f"incomplete: {line}", "yellow") for line in report.run.incomplete]
    rows += [Text(f"degraded: {reason}", "yellow") for reason in report.stats.get("degraded") or []]
    safe = report.stats.get("safe_state") or {}
    if safe.get("latched"):
        rows.append(Text(f"SAFE STATE latched at step {safe.get('step')}: {safe.get('cause')}", "bold red"))
    return Panel(Group(*rows), expand=False, border_style="green" if report.passed else "red")


def _timing(report: Report) -> RenderableType | None:
    stats = report.stats
    table = _table("real time", "µs", "p50", "p99", "p99.9", "max", "distribution (log, log)")
    table.columns[-1].justify = "left"
    for key, name in (("wake_lateness_us", "wake lateness"), ("compute_us", "compute")):
        timing = stats.get(key)
        if isinstance(timing, Mapping) and timing.get("p50") is not None:
            cells = [_number(timing.get(k)) for k in ("p50", "p99", "p999", "max")]
            table.add_row(name, *(str(c) for c in cells), Text(sparkline(timing.get("hist") or []), "cyan"))
    if not table.rows:
        return None
    counts = Text("  ".join(f"{k} {_number(stats[k])}" for k in ("ticks", "missed", "overruns") if k in stats))
    if isinstance(stats.get("slip_s"), (int, float)):
        counts.append(f"  slip {stats['slip_s']:g} s")
    return Group(table, counts)


def _shifts(report: Report) -> RenderableType | None:
    if not report.shifts:
        return None
    table = _table("shifts", "shift", "begins s", "lasts s", "a min m/s²", "a max m/s²")
    for shift in report.shifts:
        table.add_row(
            shift.name,
            f"{shift.begin_s:.3f}",
            f"{shift.end_s - shift.begin_s:.3f}",
            "–" if shift.a_min_mps2 is None else f"{shift.a_min_mps2:+.2f}",
            "–" if shift.a_max_mps2 is None else f"{shift.a_max_mps2:+.2f}",
        )
    return table


def _can(report: Report) -> RenderableType | None:
    rx = (report.stats.get("can") or {}).get("rx")
    if not isinstance(rx, Mapping) or not rx:
        return None
    keys = [k for k in dict.fromkeys(k for c in rx.values() if isinstance(c, Mapping) for k in c) if k not in HIDDEN]
    table = _table("CAN received", "message", *keys)
    for name, counters in rx.items():
        if isinstance(counters, Mapping):
            table.add_row(str(name), *(_number(counters.get(k)) for k in keys))
    rest = {k: v for k, v in report.stats["can"].items() if not isinstance(v, (Mapping, list))}
    line = Text("  ".join(f"{k} {_number(v)}" for k, v in rest.items()))
    return Group(table, line) if rest else table


def _flat(title: str, values: Any) -> RenderableType | None:
    if not isinstance(values, Mapping):
        return None
    simple = {k: v for k, v in values.items() if not isinstance(v, (Mapping, list, tuple))}
    if not simple:
        return None
    return Text.assemble((f"{title}  ", "bold"), "  ".join(f"{k} {_number(v)}" for k, v in simple.items()))


def _energy(report: Report) -> RenderableType | None:
    balance = report.energy
    if balance is None:
        return None
    table = _table("energy balance", "kJ", "supplied", "lost", "stored")
    names = dict.fromkeys([*balance.supplied_J, *balance.lost_J, *balance.stored_J])
    for name in names:
        cells = [terms.get(name) for terms in (balance.supplied_J, balance.lost_J, balance.stored_J)]
        if any(c is not None and abs(c) > 1e-6 * balance.turned_over_J for c in cells):
            table.add_row(name, *("" if c is None else f"{c * 1e-3:.3f}" for c in cells))
    line = f"residual {balance.residual_J:+.2e} J = {balance.residual_rel:+.2e} of {balance.turned_over_J:.4g} J"
    return Group(table, Text(line))


def _judgement(report: Report) -> RenderableType:
    table = _table("gates and checks", "", "condition", "")
    table.columns[1].justify = table.columns[2].justify = "left"
    for gate in report.gates:
        mark = Text("pass", "green") if gate.passed else Text("FAIL", "bold red")
        shown = gate.cause if not gate.passed else ", ".join(f"{k} = {_number(v)}" for k, v in gate.values.items())
        table.add_row(mark, gate.text, Text(shown, "dim" if gate.passed else "red"))
    for check in report.checks:
        failed = Text("FAIL", "bold red") if check.counts else Text("note", "yellow")
        mark = Text("pass", "green") if check.passed else failed
        table.add_row(mark, check.name, Text(check.text, "dim"))
    return table
