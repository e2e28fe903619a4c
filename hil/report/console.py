"""The report on the terminal: what ran, how real its time was, what happened, what passed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from torqueloop.hil.report.console_parts import number as _number
from torqueloop.hil.report.console_parts import table as _table
from torqueloop.hil.report.latency_console import timing
from torqueloop.hil.results.links import REFUSALS, BusStats, NativeStats
from torqueloop.hil.results.run import RunStats

if TYPE_CHECKING:
    from torqueloop.hil.report.report import Report

#: counters of a received message that say something at the end of a run
RX_COLUMNS = ("ok", *REFUSALS, "lost", "timeout")


def print_report(report: Report, console: Console | None = None) -> None:
    """All tables, most important first and last."""
    console, stats = console or Console(markup=False), report.stats
    parts = [
        _head(report),
        timing(stats.clock),
        _shifts(report),
        *(_can(bus_title(name, stats), bus) for name, bus in stats.buses.items()),
        *(_flat(f"{name} link", vehicle) for name, vehicle in stats.vehicles.items()),
        _flat("solver", stats.solver),
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
    line = Text.assemble(verdict, "  ", (report.run.name, "bold"), "  ")
    words = [
        info.powertrain or "",
        f"{metrics.get('clock') or 'unknown'} clock",
        f"{_number(metrics.get('ticks'))} ticks",
        f"{metrics.get('duration_s', 0.0):.3f} s",
        f"{metrics['real_time_factor']:.0f} × real time" if metrics.get("real_time_factor") else "",
    ]
    line.append(" · ".join(w for w in words if w))
    rows: list[RenderableType] = [line]
    if report.stats.hash is not None and info.over:
        rows.append(Text(f"state hash {report.stats.hash}", "dim"))
    rows += [Text(f"incomplete: {line}", "yellow") for line in report.run.incomplete]
    rows += [Text(f"degraded: {reason}", "yellow") for reason in report.stats.degraded]
    safe = report.stats.safe_state
    if safe.latched:
        rows.append(Text(f"SAFE STATE latched at step {safe.step}: {safe.cause}", "bold red"))
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


def _can(name: str, bus: BusStats) -> RenderableType | None:
    if not bus.rx:
        return None
    table = _table(name, "message", *RX_COLUMNS)
    for message, counted in bus.rx.items():
        table.add_row(message, *(_number(getattr(counted, k)) for k in RX_COLUMNS))
    parts: list[RenderableType] = [table, Text(_line(simple(bus)))]
    latency = bus_latencies(bus)
    if latency:
        times = _table("CAN latency", "µs", "p50", "p99", "p99.9", "max")
        for what, cells in latency:
            times.add_row(what, *map(_number, cells))
        parts.append(times)
    return Group(*parts)


def bus_title(name: str, stats: RunStats) -> str:
    """Heading of a bus: with its name where there are several."""
    return f"CAN received on {name}" if len(stats.buses) > 1 else "CAN received"


def simple(value: Any) -> dict[str, Any]:
    """The plain numbers and words of a dataclass of results, those of its inline parts included; what was not measured
    is left out."""
    found: dict[str, Any] = {}
    for f in fields(value):
        one = getattr(value, f.name)
        if is_dataclass(one) and f.metadata.get("metric") == "":
            found.update(simple(one))
        elif one not in (None, "") and not is_dataclass(one) and not isinstance(one, (dict, list)):
            found[f.name] = one
    return found


def bus_latencies(bus: BusStats) -> list[tuple[str, list[float]]]:
    """(what, [p50, p99, p99.9, max] in us) of the native CAN port, where it has measured them."""
    native = bus.native or NativeStats()
    times = (("stamp to tick", native.receive_latency_us), ("send to bus", native.send_latency_us))
    return [(what, [t.p50, t.p99, t.p999, t.max]) for what, t in times if t is not None and t.count]


def _line(values: Mapping[str, Any]) -> str:
    return "  ".join(f"{k} {_number(v)}" for k, v in values.items())


def _flat(title: str, value: Any) -> RenderableType | None:
    return None if value is None else Text.assemble((f"{title}  ", "bold"), _line(simple(value)))


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
