"""The report on the terminal: what ran, how real its time was, what happened, what passed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from torqueloop.hil.report.console_parts import number as _number
from torqueloop.hil.report.console_parts import table as _table
from torqueloop.hil.report.latency_console import timing

if TYPE_CHECKING:
    from torqueloop.hil.report.build import Report

#: counters of a received message that say nothing at the end of a run
HIDDEN = {"timed_out", "seen", "last_ok_ns"}


def print_report(report: Report, console: Console | None = None) -> None:
    """All tables, most important first and last."""
    console = console or Console()
    parts = [
        _head(report),
        timing(report.stats),
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
    parts: list[RenderableType] = [table]
    if rest:
        parts.append(Text("  ".join(f"{k} {_number(v)}" for k, v in rest.items())))
    latency = bus_latencies(report.stats["can"])
    if latency:
        times = _table("CAN latency", "µs", "p50", "p99", "p99.9", "max")
        for name, cells in latency:
            times.add_row(name, *map(_number, cells))
        parts.append(times)
    return Group(*parts)


def bus_latencies(can: Mapping[str, Any]) -> list[tuple[str, list[Any]]]:
    """(what, [p50, p99, p99.9, max] in us) of the native CAN port, where it has measured them."""
    found = []
    for key, name in (("receive_latency_us", "stamp to tick"), ("send_latency_us", "send to bus")):
        timing = can.get(key)
        if isinstance(timing, Mapping) and timing.get("count"):
            found.append((name, [timing.get(k) for k in ("p50", "p99", "p999", "max")]))
    return found


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
