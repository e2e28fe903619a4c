"""Second definition of what people see of a run: tables and tiles of the page, lines of the console, drawn series.

Texts are read back from the page and the console as they are; figures are taken before they become SVG. Each table,
tile, line and series is looked up by its name in one of the tables below, so that a new one without a definition is an
error. Nothing of torqueloop is imported.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from golden_metrics import RPM, About, Golden, GoldenShift
from golden_recorded import Array
from page_figures import DrawnLine

NUMBER = re.compile(r"[-+]?\d+(?:[ \u202f\u00a0]\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?")
#: what a screen has for no number
NOTHING = ("", "–")


def numbers(text: str) -> list[float]:
    """All numbers in a text, with blanks between thousands."""
    return [float(re.sub(r"[ \u202f\u00a0]", "", n)) for n in NUMBER.findall(text)]


def shows(text: str, value: Any) -> bool:
    """A cell shows this value, to the digits it has."""
    text = text.strip()
    if value is None or (isinstance(value, str) and not value.strip()):
        return text in NOTHING
    if isinstance(value, bool):
        return text == ("yes" if value else "no")
    if isinstance(value, About):
        return _close(text, value.value, value.rel, value.abs)
    if isinstance(value, str):
        return text == value.strip()
    return _close(text, float(value), 0.0, 0.0)


def _close(text: str, value: float, rel: float, extra: float) -> bool:
    found = numbers(text)
    if len(found) != 1:
        return False
    digits = re.sub(r"[^\d.e]", "", text).partition("e")[0]
    exponent = int(text.partition("e")[2] or 0) if "e" in text else 0
    decimals = len(digits.partition(".")[2])
    step = 10.0 ** (exponent - decimals)
    # whole numbers beyond four digits may be rounded to three or four digits
    if not decimals and abs(value - round(value)) > 1e-9:
        step = max(step, 10.0 ** (np.floor(np.log10(max(abs(value), 1e-300))) - 2))
    return bool(abs(found[0] - value) <= 0.51 * step + rel * abs(value) + extra)


# --- the page ---------------------------------------------------------------------------------------------------------


def shift_rows(g: Golden) -> list[list[Any]]:
    """The table of shifts on the page, with their grade."""
    return [[*row, About(s.comfort, 0.0, 0.02)] for row, s in zip(_shift_cells(g), g.shifts, strict=True)]


def console_shift_rows(g: Golden) -> list[list[Any]]:
    """The same on the console: with flare in 1/min and heat in kJ."""
    return [[*row, About(s.flare * RPM), About(s.energy / 1e3, 1e-9, 1e-9), About(s.comfort, 0.0, 0.02)]
            for row, s in zip(_shift_cells(g), g.shifts, strict=True)]  # fmt: skip


def _shift_cells(g: Golden) -> list[list[Any]]:
    return [[f"{s.old}→{s.new}", About(s.begin_s), About(s.end_s - s.begin_s), About(s.a_min), About(s.a_max),
             About(s.jerk)] for s in g.shifts]  # fmt: skip


#: from one look of the monitors to the next, with the sample itself [s]
LOOK_S = 6e-3


def strip_is_wrong(g: Golden, rows: dict[str, str], ratios: dict[str, float]) -> list[str]:
    """Cells of the strip of gears that are not what was recorded in the middle of their part of the run. Asked and
    reported: the number that was received, of the sample before or behind. Engaged: the gear whose ratio the speeds
    have; the monitors look every 5 ms and keep what they saw, so a cell may be that old, but shows nothing of later."""
    wrong = []
    for name, cells in rows.items():
        for k, cell in enumerate(cells):
            middle = (k + 0.5) / len(cells) * g.t[-1]
            before, behind = (LOOK_S if name == "engaged" else g.run.tick_s), g.run.tick_s
            at = slice(*np.searchsorted(g.t, (middle - before, middle + behind)))
            # at standstill every ratio fits
            if not cell.isdigit() or (name == "engaged" and np.abs(g.w_out[at]).min() < 2.0):
                continue
            if name == "engaged":
                off = np.abs(g.w_in[at] - ratios[cell] * g.w_out[at])
                right = bool((off <= 2e-3 * np.abs(g.w_in[at]) + 0.2).any())
            else:
                signal = {"asked": "gear_target", "reported": "gear_actual"}[name]
                right = any((g.run[n][at] == float(cell)).any() for n in g.run.units if n.endswith("." + signal))
            wrong += [] if right else [f"{name} cell {k}: {cell}"]
    return wrong


def quality_rows(g: Golden) -> list[list[Any]]:
    """The table of criteria: speeds in 1/min."""

    def row(s: GoldenShift) -> list[Any]:
        tie_up = None if s.tie_up is None else About(s.tie_up, 1e-6, 1e-9)
        return [f"{s.old}-{s.new}", About(s.command_s), About(s.time), s.fill, About(s.flare * RPM), tie_up, s.jerk,
                About(s.vdv, 0.01), About(s.energy, 1e-9, 1e-9), About(s.comfort, 0.0, 0.02)]  # fmt: skip

    return [row(s) for s in g.shifts]


#: columns of received messages, as run.json names them
RECEIVED = ("ok", "format", "length", "crc", "repeat", "jump", "range", "lost", "timeout")


def received_rows(g: Golden, bus: str) -> list[list[Any]]:
    """A row for each message that is received."""
    names = dict.fromkeys(of.name for f, of in g.run.on(bus) if not f.sent)
    bad = {name: {"crc": g.refused.get(name, 0), "timeout": g.timeouts.get(name, 0)} for name in names}
    return [[name, g.counted(bus, name, good=True), *(bad[name].get(k, 0) for k in RECEIVED[1:])] for name in names]


def energy_rows(g: Golden) -> list[list[Any]]:
    """Name, kind, kJ, part of all."""
    whole = g.turned_over
    rows = []
    for kind, terms in g.energy.items():
        for name, value in terms.items():
            slack = abs(g.run[name][2] - g.run[name][0]) if kind == "stored" else 0.0
            if abs(value) > 1e-9 * whole:
                rows.append([name, kind, About(value / 1e3, 1e-9, slack / 1e3), About(100 * value / whole, 1e-6, 1e-4)])
    return rows


# --- tiles ------------------------------------------------------------------------------------------------------------


def tiles(g: Golden) -> dict[str, tuple[Callable[[str], bool], str, Callable[[str], bool]]]:
    """Name -> (value is right, unit, line below is right)."""
    chain = "".join([g.shifts[0].old, *(f"→{s.new}" for s in g.shifts)]) if g.shifts else "none"
    clock = g.run.stats["clock"]
    compute = clock["compute_us"]
    factor = len(g.t) * g.run.tick_s / clock["run_s"]
    frames = sum(g.counted(bus, good=True) for bus in g.run.rig["bus"])
    bad = (sum(g.refused.values()), sum(g.timeouts.values()))

    def below(text: str, *values: Any) -> bool:
        found = NUMBER.findall(text)
        return len(found) == len(values) and all(map(shows, found, values))

    return {
        "shifts": (lambda v: v == chain, "", lambda b: below(b, len(g.run.modes)) and "mode changes" in b),
        "ticks": (lambda v: shows(v, len(g.t)), "", lambda b: below(b, About(factor, 1e-3)) and "× real time" in b),
        "compute p99": (lambda v: shows(v, compute["p99"]), "µs",
                        lambda b: below(re.sub("p50", "", b), compute["p50"], compute["max"])),
        "energy residual": (lambda v: About(*g.residual).fits(float(v)), "",
                            lambda b: below(b, About(g.turned_over / 1e3, 1e-3))),
        "CAN frames taken": (lambda v: shows(v, frames), "", lambda b: below(b, *bad)),
        "state hash": (lambda v: v == g.run.stats["hash"], "", lambda b: b == "same inputs, same hash"),
    }  # fmt: skip


# --- figures ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Series:
    """What a line of a figure shows: values over time."""

    values: Array
    #: time of each value [s]
    t: Array


def commanded(g: Golden, element: str) -> Array:
    """Pressure that is asked of an element [Pa]."""
    return g.run[f"{element}.p_command" if f"{element}.p_command" in g.run else f"input.{element}.p"]


def series(g: Golden, line: DrawnLine) -> Series | None:
    """What this line must show; None: there is no second definition."""
    run, t, figure, label = g.run, g.t, line.figure, line.label
    shift = figure == "zoom" or figure.startswith("shift")
    element, _, what = label.partition(" ")
    if figure == "drive" and line.unit == "1/min":
        speed = {"engine": run["engine.w"], "turbine": g.w_in, "gearbox output": g.w_out}.get(label)
        return None if speed is None else Series(speed * RPM, t)
    if (figure == "drive" or shift) and line.unit == "m/s²":
        return Series(g.a, t)
    if figure == "drive" and line.unit == "km/h":
        return Series(g.v * 3.6, t)
    if (shift or figure == "torques") and line.unit == "N·m":
        return Series(run[f"{label}.tau"], t)
    if shift and line.unit == "1/min":
        return Series(run[f"{label}.w_rel"] * RPM, t)
    if (shift or figure == "pressures") and line.unit == "bar":
        # what is asked for is dashed in a shift
        assert not shift or (line.style == "dash") == (what == "commanded")
        return Series((commanded(g, element) if what == "commanded" else run[f"{element}.p"]) / 1e5, t)
    if figure == "link" and line.unit == "mm/s":
        # the answer of the vehicle model speaks of the end of the tick before
        before = np.concatenate([g.v[:1], g.v[:-1]])
        return Series((before - run["vehicle.speed"]) * 1e3, t)
    return None


def follows(series: Series, line: DrawnLine) -> str:
    """Why a drawn line is not this series; "": it is, sample by sample, to a millionth of its range."""
    if len(line.x) != len(series.t) or (np.abs(series.t - line.x) > 1e-6).any():
        return "its points are not the samples"
    off, spread = np.abs(series.values - line.y).max(), np.ptp(series.values)
    most = 1e-6 * spread + 1e-9 * np.abs(series.values).max()
    return f"off by {off:.3g} of {spread:.3g}" if off > most else ""


#: meaning of a mode, as the legend of the states says it
MODES = {0: "stuck (locked)", 1: "sliding forward", -1: "sliding backward", 2: "free / overrunning"}


def spans(run: Any, figure: str) -> dict[str, dict[int, list[tuple[float, float]]]]:
    """Element -> mode -> drawn stretches of time, by what the colours of the figure say."""
    said = {role: mode for role, words in run.drawn.figures[figure]["colours"].items() for mode in MODES
            if MODES[mode] == words}  # fmt: skip
    found: dict[str, dict[int, list[tuple[float, float]]]] = {}
    for name, row in run.drawn.rows(figure):
        found[name] = {m: [] for m in MODES}
        for begin, end, role, text in row:
            assert MODES[said[role]].startswith(text)
            found[name][said[role]].append((begin, end))
    return found
