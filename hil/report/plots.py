"""The figures of a report, as data (hil/views/figure.py), from recorded signals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from torqueloop.hil.record.run_data import ModeChange
from torqueloop.hil.record.signals import Signals
from torqueloop.hil.report import analysis
from torqueloop.hil.report.analysis import Band, Shift, acceleration, column
from torqueloop.hil.views.figure import BAR, RPM, Array, Block, Column, Figure, Figures, Line, Mark, Panel, Span, role

if TYPE_CHECKING:
    from torqueloop.hil.report.monitors import GearStrip

#: seconds shown before and after a shift
BEFORE_S, AFTER_S = 0.55, 0.45
MODE_COLOURS = {0: "stuck", 1: "slip", -1: "slip_back", 2: "free"}
MODE_WORDS = {0: "stuck (locked)", 1: "sliding forward", -1: "sliding backward", 2: "free / overrunning"}


class RunPlots:
    """Figures of one run; a page holds all its signals, so that any of them can be added."""

    def __init__(self, figures: Figures, signals: Signals, bands: Sequence[Band]) -> None:
        self.figures, self.signals = figures, signals
        figures.gears += [(b.begin_s, b.end_s, str(b.value)) for b in bands]
        self._block = figures.block(signals.t, signals.tick_s)
        for name in signals.names:
            self._column(self._block, signals, name)
        for name, us in (("wake lateness", signals.wake_lateness_us), ("compute", signals.compute_us)):
            if us.any():
                self._block.add(name, us, "µs")

    @staticmethod
    def _column(block: Block, signals: Signals, name: str, values: Array | None = None, unit: str = "") -> Column:
        unit = signals.units.get(name, unit)
        return block.add(name, signals[name] if values is None else values, "" if unit == "1" else unit)

    def _line(self, name: str, label: str = "", role: str = "blue", factor: float = 1.0, style: str = "line") -> Line:
        return Line(label or name, self._column(self._block, self.signals, name), role, style, factor)

    def _lines(self, *wanted: tuple[str | None, str, str, float]) -> list[Line]:
        """(name, label, colour, factor) of those that were recorded."""
        return [self._line(n, label, colour, factor) for n, label, colour, factor in wanted if n in self.signals.names]

    def _accelerations(self) -> list[Line]:
        a = acceleration(self.signals)
        if a is None:
            return []
        known = "car.a" in self.signals.names
        name = "car.a" if known else "acceleration of the car"
        return [Line("acceleration of the car", self._block.add(name, a, "m/s2"), "red")]

    def drive(self) -> Figure | None:
        """Engine, turbine and output speed and the car's acceleration over the whole run (fig. 12 left of Otter
        2000)."""
        turbine = _name(self.signals, analysis.INPUT_SPEEDS)
        speeds = self._lines(
            ("engine.w", "engine", "blue", RPM), (turbine, "turbine", "orange", RPM),
            ("out.w", "gearbox output", "green", RPM),
        )  # fmt: skip
        if not speeds:
            return None
        panels = [
            Panel("1/min", speeds, title="Speeds", height=270),
            Panel("m/s²", self._accelerations(), height=190),
            Panel("km/h", self._lines(("car.v", "speed of the car", "purple", 3.6)), height=140),
        ]
        return Figure("drive", [p for p in panels if p.lines])

    def shift(self, shift: Shift, name: str = "zoom") -> Figure | None:
        """One shift in detail: torques, states, slip, pressures, acceleration (fig. 12 right of Otter 2000)."""
        names, all_ = zoom_elements(self.signals, shift), self.signals
        begin, end = max(shift.begin_s - BEFORE_S, 0.0), shift.end_s + AFTER_S
        if not names:
            return None
        # a long run is thinned: its shifts are not
        whole, near = self._block, all_.between(begin, end)
        if whole.group > 1:
            self.signals, self._block = near, self.figures.block(near.t, near.tick_s)
        roles = {n: role(k) for k, n in enumerate(names)}
        pressures = []
        for n in names:
            asked, actual = command(all_, n), f"{n}.p"
            if asked is not None:
                pressures.append(self._line(asked, f"{n} commanded", roles[n], BAR, "dash"))
            pressures += self._lines((actual, n, roles[n], BAR))
        panels = [
            Panel("N·m", self._lines(*((f"{n}.tau", n, roles[n], 1.0) for n in names)),
                  title=f"Shift {shift.name} in detail", height=170),
            Panel(rows=[(n, spans(analysis.mode_bands_recorded(near, n))) for n in names], height=20 + 20 * len(names)),
            Panel("1/min", self._lines(*((f"{n}.w_rel", n, roles[n], RPM) for n in names)), height=110),
            Panel("bar", pressures, height=120),
            Panel("m/s²", self._accelerations(), height=100),
        ]  # fmt: skip
        torques = {n: near[f"{n}.tau"] for n in names if f"{n}.tau" in near.names}
        self.signals, self._block = all_, whole
        marks = [Mark(t, f"{n} changes sign", "muted") for n, t in sign_changes(near.t, torques)]
        return Figure(name, [p for p in panels if p.lines or p.rows], begin=begin, end=end, marks=marks)

    def pressures(self) -> Figure | None:
        """Commanded and actual pressures of all actuated elements, on one scale: what matters is which is pressed
        more."""
        s = self.signals
        names = [n.removesuffix(".p") for n in s.names if n.endswith(".p") and s.units.get(n) == "Pa"]
        names = [n for n in dict.fromkeys(names) if not n.startswith("input.")]
        asked = {n: command(s, n) for n in names}
        shown = [c for n in names for c in (asked[n], f"{n}.p") if c is not None]
        top = max([BAR * float(np.nanmax(s[c])) for c in shown] + [1.0])
        panels = []
        for n in names:
            lines = self._lines((asked[n], f"{n} commanded", "orange", BAR), (f"{n}.p", f"{n} actual", "blue", BAR))
            panels.append(Panel("bar", lines, height=70, low=-0.04 * top, high=1.06 * top))
        return Figure("pressures", panels) if panels else None

    def torques(self) -> Figure | None:
        """Torques of all elements over the run."""
        names = [n for n in analysis.elements(self.signals) if f"{n}.tau" in self.signals.names]
        lines = [self._line(f"{n}.tau", n, role(k), style="dash" if k > 8 else "line") for k, n in enumerate(names)]
        return Figure("torques", [Panel("N·m", lines, height=260)]) if lines else None

    def link(self) -> Figure | None:
        """Difference between the car's speed on the rig and in the vehicle model, at the time stamp of each answer."""
        own, other, stamp = (column(self.signals, name) for name in ("car.v", "vehicle.speed", "vehicle.t"))
        if own is None or other is None or stamp is None or not len(own):
            return None
        # in lockstep an answer arrives one tick after its time stamp
        residual = self._block.add("rig - vehicle model", np.interp(stamp, self.signals.t, own) - other, "m/s")
        return Figure("link", [Panel("mm/s", [Line("rig - vehicle model", residual, "teal", factor=1e3)], height=130)])


#: SI unit -> (factor, unit) that people read
UNITS = {"rad/s": (RPM, "1/min"), "Pa": (BAR, "bar"), "m/s": (3.6, "km/h")}


def around(figures: Figures, name: str, panels: Sequence[tuple[str, Sequence[str]]], marks: Sequence[Mark],
           near: Signals, title: str = "") -> Figure | None:  # fmt: skip
    """Signals of a stretch of time, every tick of it: (unit of the axis, names) of each panel; "": of each line."""
    block = figures.block(near.t, near.tick_s)
    made: list[Panel] = []
    for unit, names in panels:
        lines = []
        for k, n in enumerate(names):
            factor, shown = UNITS.get(near.units.get(n, ""), (1.0, near.units.get(n, "")))
            label = n if unit or shown in ("", "1") else f"{n} [{shown}]"
            lines.append(Line(label, block.add(n, near[n], near.units.get(n, "")), role(k), factor=factor))
        made.append(Panel(unit, lines, title="" if made else title, height=110))
    if not made:
        return None
    return Figure(name, made, begin=float(near.t[0]), end=float(near.t[-1]) + near.tick_s, marks=marks)


def _name(signals: Signals, names: Sequence[str]) -> str | None:
    return next((name for name in names if name in signals.names), None)


def command(signals: Signals, element: str) -> str | None:
    """Name of the commanded pressure of an element: the input of its actuator."""
    return _name(signals, (f"{element}.p_command", f"input.{element}.p"))


def zoom_elements(signals: Signals, shift: Shift) -> list[str]:
    """Elements that take part in a shift: those whose mode changes between the old and the new gear."""
    t = signals.t
    before = int(np.searchsorted(t, shift.begin_s - 0.45))
    after = min(int(np.searchsorted(t, shift.end_s + 0.45)), len(t) - 1)
    found = []
    for name in analysis.elements(signals):
        mode = signals[f"{name}.mode"]
        if mode[max(before, 0)] != mode[after]:
            found.append(name)
    return found


def sign_changes(t: Array, torques: Mapping[str, Array]) -> list[tuple[str, float]]:
    """Where a torque goes through zero by more than a twentieth of its range: what good clutch control would avoid."""
    found = []
    for name, tau in torques.items():
        span = float(np.ptp(tau)) if len(tau) else 0.0
        if span > 1.0:
            found += [(name, at) for at in analysis.sign_changes(t, tau, 0.05 * span)[:1]]
    return found


def spans(bands: Sequence[Band]) -> list[Span]:
    """Modes of an element as stretches."""
    words = {mode: text.partition(" (")[0].partition(" /")[0] for mode, text in MODE_WORDS.items()}
    return [Span(b.begin_s, b.end_s, MODE_COLOURS[b.value], words[b.value]) for b in bands if b.value in MODE_COLOURS]


def states(modes: Sequence[ModeChange], signals: Signals | None) -> Figure | None:
    """All elements over the run as bands: stuck, sliding, free."""
    if signals is not None and signals.n:
        rows = [(n, spans(analysis.mode_bands_recorded(signals, n))) for n in analysis.elements(signals)]
    else:
        t_end = max((c.t_s for c in modes), default=0.0)
        rows = [(n, spans(analysis.mode_bands(modes, n, t_end))) for n in dict.fromkeys(c.element for c in modes)]
    colours = {MODE_COLOURS[m]: MODE_WORDS[m] for m in MODE_COLOURS}
    return Figure("states", [Panel(rows=rows, height=24 + 22 * len(rows))], colours=colours) if rows else None


def gear_strip(strip: GearStrip | None, shifts: Sequence[Shift], marks: Sequence[Mark]) -> Figure | None:
    """Gears that are requested, reported and engaged over time, with the shifts and what was out of order; None: there
    is nothing of it."""
    rows = [] if strip is None else [("asked", strip.asked), ("reported", strip.reported), ("engaged", strip.true)]
    made: list[tuple[str, list[Span]]] = []
    for name, bands in rows:
        row = [Span(b.begin_s, b.end_s, _gear_role(str(b.value)), str(b.value)) for b in bands if b.value != "nothing"]
        made += [(name, row)] if row else []
    if not made:
        return None
    if marks:
        made.insert(0, ("marks", []))  # their names stand there
    made.append(("shifts", [Span(s.begin_s, s.end_s, "orange", s.name) for s in shifts]))
    return Figure("gears", [Panel(rows=made, height=20 + 22 * len(made))], gears=False, marks=marks)


def _gear_role(gear: str) -> str:
    """A gear has one colour in all rows, its neighbours another."""
    light = gear.isdigit() and int(gear) % 2 == 1
    return {"N": "free", "R": "red"}.get(gear, "band_b" if light else "stuck")


def energy(
    supplied: Mapping[str, float], lost: Mapping[str, float], stored: Mapping[str, float]
) -> tuple[Figure | None, list[str]]:
    """Two bars of equal length: what came in, and where it went; and the small ones of each in words."""
    came = {k: v for k, v in supplied.items() if v > 0}
    went = {**{k: v for k, v in stored.items() if v > 0}, **{k: v for k, v in lost.items() if v > 0}}
    went.update({k: -v for k, v in supplied.items() if v < 0})
    came.update({k: -v for k, v in [*stored.items(), *lost.items()] if v < 0})
    if max(sum(came.values()), sum(went.values())) <= 0:
        return None, []
    rows: list[tuple[str, list[Span]]] = []
    small = []
    for n, (row, terms) in enumerate((("came from", came), ("went to", went))):
        left, made = 0.0, []
        for k, (label, value) in enumerate(sorted(terms.items(), key=lambda kv: -kv[1])):
            made.append(
                Span(left * 1e-3, (left + value) * 1e-3, role((k + 2 * n) % 8), f"{label} {value * 1e-3:.0f} kJ")
            )
            left += value
        rows.append((row, made))
        few = [(k, v) for k, v in terms.items() if 2e-5 * sum(terms.values()) < v <= 0.05 * sum(terms.values())]
        if few:
            words = [f"{k} {v * 1e-3:.1f}" for k, v in sorted(few, key=lambda kv: -kv[1])[:9]]
            small.append(f"{row}, small ones [kJ]: {', '.join(words)}")
    return Figure("energy", [Panel(rows=rows, height=110)], x="kJ", gears=False), small
