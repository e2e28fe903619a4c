"""report.html: what templates/report.html shows of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torqueloop.core.describe.classes import dataclass
from torqueloop.hil.report import first_fault, plots
from torqueloop.hil.report.analysis import Shift
from torqueloop.hil.report.assumed import assumed_numbers
from torqueloop.hil.report.console import RX_COLUMNS, bus_latencies, bus_title, simple
from torqueloop.hil.report.gear_console import monitors_passed
from torqueloop.hil.report.latency import degraded
from torqueloop.hil.report.latency_html import real_time
from torqueloop.hil.report.moment import moment
from torqueloop.hil.report.monitors import FAILED, FOLLOWS, WAIVED, MonitorVerdict
from torqueloop.hil.report.pages import At, number
from torqueloop.hil.report.pages import render as render_page
from torqueloop.hil.report.shift_quality import ShiftQuality
from torqueloop.hil.results.files import plain
from torqueloop.hil.results.links import BusStats
from torqueloop.hil.views.figure import RPM, Figures, Mark

if TYPE_CHECKING:
    from torqueloop.hil.report.report import Report

#: shifts that are drawn one by one
FIGURES_MAX = 24
#: windows of one injected fault that are marked
MARKS_MAX = 20
#: columns of the table of recorded streams
STREAM_COLUMNS = ("bytes_written", "chunks", "lost_records", "discarded_bytes", "high_water", "write_s_max", "cause")


@dataclass(frozen=True)
class Tile:
    """One figure at the top of the page."""

    name: str
    value: str
    below: str = ""
    unit: str = ""
    bad: bool = False
    code: bool = False


def write_html(report: Report, path: Path | str) -> None:
    """Render and write the page."""
    Path(path).write_text(render(report), encoding="utf-8")


def render(report: Report) -> str:
    """The whole page."""
    stats, drawn = report.stats, Figures()
    shown = draw(report, drawn)
    return render_page(
        "report.html",
        report.run.name,
        report.passed,
        drawn,
        verdict=report.verdict,
        inconclusive=report.inconclusive,
        what=what_it_is(report),
        words=_words(report),
        safe=stats.safe_state,
        incomplete=report.run.incomplete,
        rebuilt=report.rebuilt,
        degraded=degraded(stats),
        tiles=_tiles(report),
        summary=report.summary,
        failed_monitors=[v for v in report.monitors if v.state in (FAILED, FOLLOWS, WAIVED)],
        monitors=[_monitor(v) for v in report.monitors],
        monitors_passed=monitors_passed(report.monitors),
        gates=[_gate(g.passed, g.text, g.cause, g.values, g.source) for g in report.gates],
        checks=report.checks,
        shifts=[
            (
                At(s.name, max(0.0, s.begin_s - plots.BEFORE_S), s.end_s + plots.AFTER_S),
                f"{s.begin_s:.3f}",
                f"{s.duration_s:.3f}",
                _form("+.2f", s.a_min_mps2),
                _form("+.2f", s.a_max_mps2),
                _form(".0f", q.jerk),
                _form(".1f", q.comfort),
            )
            for s, q in zip(report.shifts, report.quality, strict=True)
        ],  # fmt: skip
        quality=[_quality(q) for q in report.quality],
        faults=first_fault.fault_rows(report),
        buses=[_bus(bus_title(name, stats), bus) for name, bus in stats.buses.items()],
        limited=stats.outputs_limited,
        vehicles=[(name, simple(vehicle)) for name, vehicle in stats.vehicles.items()],
        participants=[(name, _flat(plain(peer))) for name, peer in stats.participants.items()],
        solver=simple(stats.solver) if stats.solver is not None else {},
        recording={
            "head": ("stream", *STREAM_COLUMNS),
            "rows": [(n, *(getattr(s, k) for k in STREAM_COLUMNS)) for n, s in stats.recording.items()],
        },
        assumed=_assumed(report.run.path),
        identity=_identity(report),
        metrics=sorted((k, v) for k, v in report.metrics.items() if v is not None),
        **shown,
    )


def _form(form: str, value: float | None) -> str:
    return "–" if value is None else format(value, form)


def write_figures(report: Report, folder: Path) -> list[Path]:
    """Every figure of the page as a picture (SVG) of its name. NoMatplotlib where that is not installed."""
    from torqueloop.hil.views.still import draw_all

    drawn = Figures()
    draw(report, drawn)
    return draw_all(drawn, folder)


def _monitor(v: MonitorVerdict) -> tuple[Any, ...]:
    """A row of the table of monitors."""
    unit = "" if v.unit == "1" else f" {v.unit}"
    when = "" if v.first_s is None else At(f"{v.first_s:.2f} s", v.first_s - 1.0, v.first_s + 1.0)
    return v.state, v.name, v.value, "" if v.worst is None else f"{v.worst:.3g}{unit}", f"{v.limit:g}{unit}", when


def _words(report: Report) -> list[str]:
    info, metrics = report.run.info, report.metrics
    words = [
        info.powertrain,
        f"{info.clock} clock" if info.clock else None,
        f"{1.0 / info.tick_s:g} Hz" if info.tick_s else None,
        f"{metrics.get('duration_s') or 0.0:.1f} s",
        info.started.replace("T", " ")[:19],
    ]
    return [word for word in words if word]


def what_it_is(report: Report) -> str:
    """The run in one sentence: what was in the loop with what."""
    stats = report.stats
    if report.run.info.clock == "offline":
        return "Powertrain simulated offline, its inputs given over time"
    words = ["Gearbox and powertrain in the loop"]
    if stats.buses:
        words.append("control unit over CAN")
    for vehicle in stats.vehicles.values():
        mode = vehicle.link.mode if vehicle.link is not None else ""
        words.append("vehicle model over ZeroMQ" + (f" ({mode})" if mode else ""))
    return " · ".join(words) + (f" · kernel {stats.kernel}" if stats.kernel else "")


def _tiles(report: Report) -> list[Tile]:
    m, stats, clock = report.metrics, report.stats, report.stats.clock
    chain = "".join([*(s.gear_from for s in report.shifts[:1]), *(f"→{s.gear_to}" for s in report.shifts)])
    tiles = [Tile("shifts", chain or "none", f"{number(m.get('mode_changes'))} mode changes")]
    if report.run.info.clock in ("virtual", "offline"):
        factor = clock.real_time_factor
        below = "offline" if report.run.info.clock == "offline" else "virtual time, lockstep"
        tiles.append(Tile("ticks", number(clock.ticks), below + (f", {number(factor)} × real time" if factor else "")))
    else:
        of = f"of {number(clock.ticks)}"
        tiles.append(Tile("ticks missed", number(clock.missed), _lost(report), of, bool(clock.missed)))
        if clock.wake_lateness_us is not None:
            worst = f"max {number(clock.wake_lateness_us.max)} µs"
            tiles.append(Tile("wake lateness p99", number(clock.wake_lateness_us.p99), worst, "µs"))
    if clock.compute_us is not None:
        worst = f"p50 {number(clock.compute_us.p50)} · max {number(clock.compute_us.max)} µs"
        tiles.append(Tile("compute p99", number(clock.compute_us.p99), worst, "µs"))
    if report.energy is not None:
        below = f"of {report.energy.turned_over_J * 1e-3:.0f} kJ turned over"
        tiles.append(Tile("energy residual", f"{abs(report.energy.residual_rel):.1e}", below))
    if stats.buses:
        bad = f"{number(m.get('can_rx_bad'))} refused, {number(m.get('can_rx_timeout'))} timeouts"
        tiles.append(Tile("CAN frames taken", number(m.get("can_rx_ok")), bad))
    if stats.hash is not None and report.run.info.over:
        tiles.append(Tile("state hash", stats.hash, "same inputs, same hash", code=True))
    return tiles


def _lost(report: Report) -> str:
    clock = report.stats.clock
    words = [f"{number(clock.overruns)} overruns"] if clock.overruns is not None else []
    if clock.lost_time_s is not None:
        words.append(f"{clock.lost_time_s:g} s lost")
    return " · ".join(words)


def _gate(passed: bool, text: str, cause: str, values: Mapping[str, Any], source: str) -> dict[str, Any]:
    shown = cause or ", ".join(f"{k} = {number(v)}" for k, v in values.items())
    return {"passed": passed, "text": text, "shown": shown, "source": source}


def interesting(shifts: Sequence[Shift]) -> Shift | None:
    """3→4, in which C12 takes the torque from C11; else the last shift."""
    return next((s for s in shifts if s.name == "3→4"), shifts[-1] if shifts else None)


def draw(report: Report, drawn: Figures) -> dict[str, Any]:
    """Draw what a run has; names of the figures by their name in the template, None where there is nothing to draw, and
    what the section about the loop's time shows."""
    run, bands, signals = report.run, report.bands, report.run.signals
    kinds = ("strip", "drive", "zoom", "torques", "pressures", "link")
    found: dict[str, Any] = {**dict.fromkeys(kinds), "shift_figures": [], "energy": _energy(report, drawn)}
    made = plots.RunPlots(drawn, signals, bands) if signals is not None and signals.n else None
    found["time"] = real_time(report.stats, run.info.tick_s, run.info.realtime, drawn)
    found["states"] = drawn.add(plots.states(run.modes, signals))
    found["failed"] = [
        (f"{v.kind} {v.name}", v.text, drawn.add(moment(drawn, made.signals, v, f"failed{k}")) if made else None)
        for k, v in enumerate(report.verdicts)
        if not v.passed
    ]
    found["first_fault"] = first_fault.shown(report, drawn)
    if made is None:
        return found
    found["strip"] = drawn.add(plots.gear_strip(report.strip, report.shifts, marks_of(report)))
    for name in ("drive", "torques", "pressures", "link"):
        found[name] = drawn.add(getattr(made, name)())
    shift = interesting(report.shifts)
    found["zoom"] = drawn.add(made.shift(shift)) if shift else None
    found["shift_figures"] = [
        (s.name, figure)
        for k, s in enumerate(_pictured(report))
        if s is not shift and (figure := drawn.add(made.shift(s, f"shift{k}")))
    ]
    return found


def marks_of(report: Report) -> list[Mark]:
    """What was out of order, at its time."""
    stats, tick_s = report.stats, report.run.info.tick_s
    marks = [Mark(v.first_s, v.name) for v in report.monitors if v.state == FAILED and v.first_s is not None]
    if tick_s and stats.safe_state.latched and stats.safe_state.step is not None:
        marks.append(Mark(stats.safe_state.step * tick_s, "safe state"))
    for fault in stats.faults:
        marks += [Mark(w.step * (tick_s or 0.0), f"fault {fault.target}", "gold") for w in fault.windows[:MARKS_MAX]]
    return marks


def _pictured(report: Report) -> list[Shift]:
    """All shifts; of many, the one of each kind with the largest jerk."""
    if len(report.shifts) <= FIGURES_MAX:
        return report.shifts
    worst: dict[str, tuple[float, Shift]] = {}
    for shift, quality in zip(report.shifts, report.quality, strict=True):
        jerk = quality.jerk or 0.0
        if shift.name not in worst or jerk > worst[shift.name][0]:
            worst[shift.name] = (jerk, shift)
    return sorted((shift for _, shift in worst.values()), key=lambda s: s.begin_s)[:FIGURES_MAX]


def _quality(q: ShiftQuality) -> tuple[Any, ...]:
    """A row of the table of criteria; speeds as people read them."""
    flare = None if q.flare is None else f"{q.flare * RPM:.0f}"
    numbers = (q.time, q.fill, q.tie_up, q.jerk, q.vdv, q.energy, q.comfort)
    time, fill, tie_up, jerk, vdv, energy, comfort = ("" if x is None else f"{x:.3g}" for x in numbers)
    return (q.name, f"{q.begin_s:.3f}", time, fill, flare, tie_up, jerk, vdv, energy, comfort)


def _energy(report: Report, drawn: Figures) -> dict[str, Any] | None:
    balance = report.energy
    if balance is None:
        return None
    rows = [
        (name, kind, f"{value * 1e-3:.3f}", f"{100 * value / balance.turned_over_J:.2f} %")
        for kind, terms in (("supplied", balance.supplied_J), ("lost", balance.lost_J), ("stored", balance.stored_J))
        for name, value in sorted(terms.items(), key=lambda kv: -abs(kv[1]))
        if abs(value) > 1e-9 * balance.turned_over_J
    ]
    figure, small = plots.energy(balance.supplied_J, balance.lost_J, balance.stored_J)
    residual = f"residual {balance.residual_J:+.3e} J = {balance.residual_rel:+.2e} of the energy turned over"
    return {"figure": drawn.add(figure), "small": small, "rows": rows, "residual": residual}


def _bus(title: str, bus: BusStats) -> dict[str, Any]:
    errors = bus.native.errors if bus.native is not None else {}
    return {
        "title": title,
        "head": ("received", *RX_COLUMNS),
        "rows": [(name, *(getattr(count, k) for k in RX_COLUMNS)) for name, count in bus.rx.items()],
        "numbers": {**simple(bus), **(simple(bus.gateway) if bus.gateway is not None else {})},
        "latency": [(name, *cells) for name, cells in bus_latencies(bus)],
        "errors": [(kind, n) for kind, n in errors.items() if n],
        "known": [(name, k.layout, k.period, k.protection, k.notes, k.source) for name, k in bus.known.items()],
    }


def _assumed(run_dir: Path) -> dict[str, Any] | None:
    found = assumed_numbers(run_dir)
    if not found.said:
        return None
    weighed = found.weightiest
    metrics = sorted({name for _, changes in weighed for name in changes})
    return {
        "said": found.said,
        "number": len(found.numbers),
        "metrics": ("number", "value", *metrics),
        "weighed": [
            (f"{s.table}.{s.key}", f"{s.value:g}", *(f"{100 * c[m]:+.2f} %" if m in c else "" for m in metrics))
            for s, c in weighed
        ],
        "all": [
            (Path(s.file).name, f"{s.table}.{s.key}", f"{s.value:g}",
             "" if s.low is None else f"{s.low:g} .. {s.high:g}", s.reason)
            for s in found.numbers
        ],
    }  # fmt: skip


def _identity(report: Report) -> dict[str, Any]:
    info = plain(report.run.info)
    hidden = ("stats", "gates", "realtime", "monitors")
    return _flat({k: v for k, v in info.items() if k not in hidden and v not in (None, "", [], {})})


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as one, lists as their items in a row (of tables: how many)."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            found.update(_flat(value, f"{prefix}{key}."))
        elif isinstance(value, (list, tuple)):
            tables = any(isinstance(item, Mapping) for item in value)
            found[prefix + str(key)] = len(value) if tables else ", ".join(map(str, value))
        else:
            found[prefix + str(key)] = value
    return found
