"""The report on the terminal: what the gearbox did, what passed, then the links, the step, the loop's time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from torqueloop.hil.report.console_parts import number as _number
from torqueloop.hil.report.console_parts import table as _table
from torqueloop.hil.report.gear_console import monitor_lines, shift_table, strip
from torqueloop.hil.report.latency_console import timing, timing_line
from torqueloop.hil.results.links import REFUSALS, BusStats, NativeStats
from torqueloop.hil.results.run import RunStats

if TYPE_CHECKING:
    from torqueloop.hil.report.report import Report

#: how a verdict looks; all others: nothing is said of the rig
VERDICTS = {"passed": "bold white on green", "failed": "bold white on red"}
#: checks and metrics that are about the loop's own time
TIMED = ("every tick on time", "real time not degraded")
#: counters of a received message that say something at the end of a run
RX_COLUMNS = ("ok", *REFUSALS, "lost", "timeout")


def print_report(report: Report, console: Console | None = None) -> None:
    """All tables, what the gearbox did first."""
    console, stats = console or Console(markup=False), report.stats
    end_s = float(report.run.signals.t[-1]) if report.run.signals is not None and report.run.signals.n else 0.0
    parts = [
        _head(report),
        strip(report.strip, end_s),
        shift_table(report),
        monitor_lines(report.monitors),
        _judgement(report),
        timing(stats.clock) if _late(report) else timing_line(stats.clock),
        *(_can(bus_title(name, stats), bus) for name, bus in stats.buses.items()),
        *(_flat(f"{name} link", vehicle) for name, vehicle in stats.vehicles.items()),
        _flat("solver", stats.solver),
        _energy(report),
    ]
    for part in parts:
        if part is not None:
            console.print(part)
            console.print()


def _head(report: Report) -> RenderableType:
    info, metrics = report.run.info, report.metrics
    verdict = Text(f" {report.verdict.upper()} ", VERDICTS.get(report.verdict, "bold black on yellow"))
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
    if report.inconclusive:
        rows.append(Text(f"inconclusive: {report.inconclusive}", "bold yellow"))
    if report.summary:
        rows.append(Text(report.summary, "bold" if report.passed else "bold red"))
    if report.stats.hash is not None and info.over:
        rows.append(Text(f"state hash {report.stats.hash}", "dim"))
    rows += [Text(f"incomplete: {line}", "yellow") for line in report.run.incomplete]
    rows += [Text(f"degraded: {reason}", "yellow") for reason in report.stats.degraded]
    safe = report.stats.safe_state
    if safe.latched:
        rows.append(Text(f"SAFE STATE latched at step {safe.step}: {safe.cause}", "bold red"))
    return Panel(Group(*rows), expand=False, border_style="green" if report.passed else "red")


def _late(report: Report) -> bool:
    """The loop was late, real time was degraded, or a gate on its time failed."""
    timed = [c for c in report.checks if c.name in TIMED]
    from torqueloop.hil.report.report import TIME_METRICS

    gates = [g for g in report.gates if any(name.startswith(TIME_METRICS) for name in g.values)]
    return not all(c.passed for c in timed) or not all(g.passed for g in gates)


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
    """Gates with their values; checks that failed or are worth knowing, the others in one line."""
    table = _table("gates and checks", "", "condition", "")
    table.columns[1].justify = table.columns[2].justify = "left"
    for gate in report.gates:
        mark = Text("pass", "green") if gate.passed else Text("FAIL", "bold red")
        shown = gate.cause if not gate.passed else ", ".join(f"{k} = {_number(v)}" for k, v in gate.values.items())
        table.add_row(mark, gate.text, Text(shown, "dim" if gate.passed else "red"))
    wrong = [check for check in report.checks if not check.passed]
    for check in wrong:
        failed = Text("FAIL", "bold red") if check.counts else Text("note", "yellow")
        table.add_row(failed, check.name, Text(check.text, "dim"))
    passed = len(report.checks) - len(wrong)
    line = Text(f"{passed} of {len(report.checks)} checks of every run passed", "dim")
    return Group(table, line) if table.row_count else line
