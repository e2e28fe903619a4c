"""report.html: one self-contained page, readable without network, in light and dark, on paper too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torqueloop.hil.report import first_fault, plots
from torqueloop.hil.report.analysis import Shift
from torqueloop.hil.report.console import HIDDEN, bus_latencies
from torqueloop.hil.report.html_parts import number as _num
from torqueloop.hil.report.html_parts import page
from torqueloop.hil.report.html_parts import pairs as _pairs
from torqueloop.hil.report.html_parts import pairs_of_tables as _pairs_of_tables
from torqueloop.hil.report.html_parts import section as _section
from torqueloop.hil.report.html_parts import table as _table
from torqueloop.hil.report.latency import degraded
from torqueloop.hil.report.latency_html import real_time

if TYPE_CHECKING:
    from torqueloop.hil.report.build import Report

NO_PLOTS = "Plots need matplotlib: <code>pip install 'torqueloop[report]'</code>; then <code>torqueloop report</code>"
TIMING_NOTE = "How late the loop woke up and how long a tick took, over every tick after the start-up grace."


def write_html(report: Report, path: Path | str) -> None:
    """Render and write the page."""
    Path(path).write_text(render(report), encoding="utf-8")


def render(report: Report) -> str:
    """The whole page."""
    info = report.run.info
    title = str(info.get("rig") or report.run.path.name)
    body = [
        _header(report, title),
        _warnings(report),
        _tiles(report),
        _hero(report),
        f"<div class='pair top'>{_gates(report)}{_section('Shifts', _shifts(report))}</div>",
        _section("First fault", first_fault.section(report), "Every tick around the latching of the safe state."),
        _section("Injected faults", _faults(report), "What was made wrong on purpose."),
        _section("Real time", real_time(report.stats, info), TIMING_NOTE),
        _section("Element states", _figure("states", report), "Mode of every clutch, brake and free wheel."),
        _section("Element torques", _figure("torques", report)),
        _section("Pressures", _figure("pressures", report)),
        _section("Energy", _energy(report), "Engine work = kinetic energy + heat of each element + converter + road."),
        _section("CAN", _can(report)),
        _section(
            "Sent signals held to their limits", _pairs(report.stats.get("outputs_limited")), "Ticks each was held."
        ),
        _section("Vehicle link", _link(report)),
        _section("Solver", _pairs(report.stats.get("solver"))),
        _section("Recording", _pairs_of_tables(report.stats.get("recording"))),
        _section("This run", _identity(report)),
        _metrics(report),
    ]
    return page(title, report.passed, body)


# --- parts ----------------------------------------------------------------------------------------------------------


def _header(report: Report, title: str) -> str:
    info, metrics = report.run.info, report.metrics
    verdict = "passed" if report.passed else "failed"
    words = [
        info.get("powertrain"),
        f"{metrics['clock']} clock" if metrics.get("clock") else None,
        f"{1.0 / info['tick_s']:g} Hz" if info.get("tick_s") else None,
        f"{metrics.get('duration_s', 0.0):.1f} s",
        str(info.get("started", "")).replace("T", " ")[:19] or None,
    ]
    line = " · ".join(escape(str(w)) for w in words if w)
    return (
        f"<header><div><h1>{escape(title)} <span class='verdict {verdict}'>{verdict}</span></h1>"
        f"<p>{escape(what_it_is(report))}<br>{line}</p></div>"
        "<button id='theme' title='light or dark' aria-label='switch between light and dark'>◐</button></header>"
    )


def what_it_is(report: Report) -> str:
    """The run in one sentence: what was in the loop with what."""
    stats = report.stats
    if report.metrics.get("clock") == "offline":
        return "Powertrain simulated offline, its inputs given over time"
    words = ["Gearbox and powertrain in the loop"]
    if "can" in stats:
        words.append("control unit over CAN")
    if "vehicle" in stats:
        mode = stats["vehicle"].get("mode")
        words.append("vehicle model over ZeroMQ" + (f" ({mode})" if mode else ""))
    kernel = stats.get("kernel")
    return " · ".join(words) + (f" · kernel {kernel}" if kernel else "")


def _warnings(report: Report) -> str:
    lines = []
    safe = report.stats.get("safe_state") or {}
    if safe.get("latched"):
        cause = escape(str(safe.get("cause")))
        lines.append(f"<div class='note bad'><b>Safe state</b> latched at step {safe.get('step')}: {cause}</div>")
    if report.run.incomplete:
        items = "".join(f"<li>{escape(line)}</li>" for line in report.run.incomplete)
        more = ""
        if report.rebuilt:
            more = f"<p>Rebuilt from the recorded ticks: {escape(', '.join(report.rebuilt))}.</p>"
        lines.append(f"<div class='note warn'><b>This run is incomplete</b><ul>{items}</ul>{more}</div>")
    if (reasons := degraded(report.stats)) is not None:
        lines.append(f"<div class='note warn'><b>Real time degraded:</b> {escape(reasons)}</div>")
    return "".join(lines)


def _tiles(report: Report) -> str:
    m, stats = report.metrics, report.stats
    chain = report.shifts[0].gear_from if report.shifts else ""
    chain += "".join(f"→{s.gear_to}" for s in report.shifts)
    tiles = [("shifts", chain or "none", f"{_num(m.get('mode_changes'))} mode changes")]
    missed = m.get("missed")
    if m.get("clock") in ("virtual", "offline"):
        factor = m.get("real_time_factor")
        below = "offline" if m["clock"] == "offline" else "virtual time, lockstep"
        tiles.append(("ticks", _num(m.get("ticks")), below + (f", {_num(factor)} × real time" if factor else "")))
    else:
        tiles.append(("ticks missed", f"{_num(missed)} <small>of {_num(m.get('ticks'))}</small>", _slip(m)))
        if m.get("wake_lateness_p99_us") is not None:
            worst = f"max {_num(m.get('wake_lateness_max_us'))} µs"
            tiles.append(("wake lateness p99", f"{_num(m['wake_lateness_p99_us'])} <small>µs</small>", worst))
    if m.get("compute_p99_us") is not None:
        worst = f"p50 {_num(m.get('compute_p50_us'))} · max {_num(m.get('compute_max_us'))} µs"
        tiles.append(("compute p99", f"{_num(m['compute_p99_us'])} <small>µs</small>", worst))
    if report.energy is not None:
        text = f"{abs(report.energy.residual_rel):.1e}"
        tiles.append(("energy residual", text, f"of {report.energy.turned_over_J * 1e-3:.0f} kJ turned over"))
    if m.get("can_rx_ok") is not None:
        bad = f"{_num(m.get('can_rx_bad', 0))} refused, {_num(m.get('can_rx_timeout', 0))} timeouts"
        tiles.append(("CAN frames taken", _num(m["can_rx_ok"]), bad))
    if m.get("t_0_100_kmh_s") is not None:
        top = f"fastest {m['v_max_mps'] * 3.6:.0f} km/h"
        tiles.append(("0–100 km/h", f"{m['t_0_100_kmh_s']:.1f} <small>s</small>", top))
    if stats.get("hash") and report.run.ended:
        tiles.append(("state hash", f"<code>{escape(str(stats['hash']))[:16]}</code>", "same inputs, same hash"))
    cells = []
    for label, value, below in tiles:
        kind = "tile bad" if label == "ticks missed" and missed else "tile"
        cells.append(f"<div class='{kind}'><span>{label}</span><b>{value}</b><i>{below}</i></div>")
    return f"<div class='tiles'>{''.join(cells)}</div>"


def _slip(m: Mapping[str, Any]) -> str:
    words = [f"{_num(m.get('overruns'))} overruns"] if m.get("overruns") is not None else []
    if m.get("slip_s") is not None:
        words.append(f"slip {m['slip_s']:g} s")
    return " · ".join(words)


def _hero(report: Report) -> str:
    """The two figures the run is about: the whole drive, and one shift in detail."""
    signals = report.run.signals
    if not plots.available():
        return f"<div class='note'>{NO_PLOTS}</div>"
    if signals is None or not len(signals.tick):
        return ""
    left = plots.drive(signals, report.bands)
    shift = interesting(report.shifts)
    right = plots.shift_zoom(signals, shift, report.bands) if shift else None
    return "<div class='pair hero'>" + "".join(f"<figure>{svg}</figure>" for svg in (left, right) if svg) + "</div>"


def interesting(shifts: Sequence[Shift]) -> Shift | None:
    """3→4, where C11 hands over to C12; else the last upshift; else the last shift."""
    for wanted in ("3→4",):
        for shift in shifts:
            if shift.name == wanted:
                return shift
    return shifts[-1] if shifts else None


def _gates(report: Report) -> str:
    rows = []
    for gate in report.gates:
        shown = gate.cause or ", ".join(f"{k} = {_num(v)}" for k, v in gate.values.items())
        rows.append((_mark(gate.passed), f"<code>{escape(gate.text)}</code>", escape(shown), escape(gate.source)))
    for check in report.checks:
        rows.append((_mark(check.passed, check.counts), escape(check.name), escape(check.text), "every run"))
    return _section("Gates and checks", _table(("", "condition", "", "from"), rows))


def _mark(passed: bool, counts: bool = True) -> str:
    if passed:
        return "<span class='ok'>pass</span>"
    return "<span class='bad'>FAIL</span>" if counts else "<span class='warn'>note</span>"


def _shifts(report: Report) -> str:
    rows = [
        (s.name, f"{s.begin_s:.3f}", f"{s.end_s - s.begin_s:.3f}", _num(s.a_min_mps2), _num(s.a_max_mps2))
        for s in report.shifts
    ]
    table = _table(("shift", "begins s", "lasts s", "a min m/s²", "a max m/s²"), rows, numbers=True) if rows else ""
    signals = report.run.signals
    if signals is None or not plots.available():
        return table
    drawn = []
    for k, shift in enumerate(report.shifts):
        if shift is interesting(report.shifts):
            continue
        svg = plots.shift_zoom(signals, shift, report.bands, f"shift{k}")
        if svg:
            drawn.append(f"<details><summary>shift {shift.name} in detail</summary><figure>{svg}</figure></details>")
    return table + "".join(drawn)


def _figure(name: str, report: Report) -> str:
    if not plots.available():
        return ""
    run = report.run
    if name == "states":
        svg = plots.states(run.modes, run.signals, report.bands)
    elif run.signals is None or not len(run.signals.tick):
        return ""
    else:
        svg = {"torques": plots.torques, "pressures": plots.pressures}[name](run.signals, report.bands)
    return f"<figure>{svg}</figure>" if svg else ""


def _energy(report: Report) -> str:
    balance = report.energy
    if balance is None:
        return ""
    svg = plots.energy(balance.supplied_J, balance.lost_J, balance.stored_J) if plots.available() else None
    rows = [
        (escape(name), kind, f"{value * 1e-3:.3f}", f"{100 * value / balance.turned_over_J:.2f} %")
        for kind, terms in (("supplied", balance.supplied_J), ("lost", balance.lost_J), ("stored", balance.stored_J))
        for name, value in sorted(terms.items(), key=lambda kv: -abs(kv[1]))
        if abs(value) > 1e-9 * balance.turned_over_J
    ]
    table = _table(("", "", "kJ", "of all"), rows, numbers=True)
    rest = f"<p>residual {balance.residual_J:+.3e} J = {balance.residual_rel:+.2e} of the energy turned over</p>"
    return (f"<figure>{svg}</figure>" if svg else "") + rest + f"<details><summary>all terms</summary>{table}</details>"


def _can(report: Report) -> str:
    can = report.stats.get("can")
    if not isinstance(can, Mapping):
        return ""
    rx = can.get("rx")
    parts = [_pairs({k: v for k, v in can.items() if not isinstance(v, (Mapping, list))})]
    if isinstance(rx, Mapping) and rx:
        counted = dict.fromkeys(k for c in rx.values() if isinstance(c, Mapping) for k in c)
        keys = [k for k in counted if k not in HIDDEN]
        rows = [(escape(str(n)), *(_num(c.get(k)) for k in keys)) for n, c in rx.items() if isinstance(c, Mapping)]
        parts.insert(0, _table(("received", *keys), rows, numbers=True))
    latency = [(name, *map(_num, cells)) for name, cells in bus_latencies(can)]
    if latency:
        parts.append(_table(("µs", "p50", "p99", "p99.9", "max"), latency, numbers=True))
    errors = can.get("errors")
    if isinstance(errors, Mapping) and any(errors.values()):
        parts.append(_table(("error frames", ""), [(k, _num(v)) for k, v in errors.items() if v], numbers=True))
    return "".join(parts)


def _link(report: Report) -> str:
    svg = None
    if plots.available() and report.run.signals is not None:
        svg = plots.link(report.run.signals)
    return (f"<figure>{svg}</figure>" if svg else "") + _pairs(report.stats.get("vehicle"))


def _faults(report: Report) -> str:
    rows = first_fault.fault_rows(report)
    return _table(("acts on", "kind", "value", "when", "acted"), rows) if rows else ""


def _identity(report: Report) -> str:
    info = {k: v for k, v in report.run.info.items() if k not in ("stats", "gates")}
    return _pairs(_flat(info))


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            found.update(_flat(value, f"{prefix}{key}."))
        elif isinstance(value, (list, tuple)):
            found[prefix + str(key)] = ", ".join(map(str, value))
        else:
            found[prefix + str(key)] = value
    return found


def _metrics(report: Report) -> str:
    rows = [(f"<code>{escape(k)}</code>", _num(v)) for k, v in sorted(report.metrics.items())]
    table = _table(("metric", "value"), rows, numbers=True)
    return _section("All metrics", f"<details><summary>{len(rows)} names for --gate</summary>{table}</details>")
