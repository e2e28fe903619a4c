"""The figures of a report as inline SVG, drawn from recorded signals. Needs matplotlib (extra [report])."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from torqueloop.hil.record.run_data import ModeChange
from torqueloop.hil.record.signals import Signals
from torqueloop.hil.report import analysis
from torqueloop.hil.report.analysis import Band, Shift, acceleration, column, input_speed, thin
from torqueloop.hil.report.style import available as available
from torqueloop.hil.report.style import colour, stacked, themed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from torqueloop.hil.report.monitors import GearStrip

RPM = 30.0 / np.pi
BAR = 1e-5
#: stretches of one gear that are shaded at most, and stretches of one mode that are drawn one by one: of more, those
#: too short to be seen are left out
BANDS_MAX, SPANS_MAX = 150, 1000
MODE_COLOURS = {0: "stuck", 1: "slip", -1: "slip_back", 2: "free"}
MODE_WORDS = {0: "stuck (locked)", 1: "sliding forward", -1: "sliding backward", 2: "free / overrunning"}


def _line(ax: Axes, t: Any, y: Any, role: str, label: str, **more: Any) -> None:
    tt, yy = thin(t, y)
    ax.plot(tt, yy, color=colour(role), label=label, **more)


def _legend(ax: Axes, columns: int = 4, where: Any = "upper right") -> None:
    if ax.get_legend_handles_labels()[1]:
        ax.legend(loc=where, ncols=columns, columnspacing=1.0)


def _gear_background(ax: Axes, bands: Sequence[Band], named: bool = False) -> None:
    """Shaded stretches with an engaged gear; white between them: a shift. Not where there are too many to be told."""
    if len(bands) > BANDS_MAX:
        return
    for k, band in enumerate(bands):
        ax.axvspan(band.begin_s, band.end_s, color=colour("band_a" if k % 2 == 0 else "band_b"), linewidth=0, zorder=0)
        if named:
            middle = (band.begin_s + band.end_s) / 2
            ax.annotate(
                f"gear {band.value}" if k == 0 else str(band.value),
                (middle, 1.0),
                xycoords=("data", "axes fraction"),
                ha="center",
                va="bottom",
                fontsize=9,
                fontweight="bold",
                color=colour("muted"),
            )


def drive(signals: Signals, bands: Sequence[Band]) -> str | None:
    """Engine, turbine and output speed and the car's acceleration over the whole run (fig. 12 left of Otter 2000)."""
    t = signals.t
    speeds = [
        (column(signals, "engine.w"), "engine", "blue"),
        (input_speed(signals), "turbine", "orange"),
        (column(signals, "out.w"), "gearbox output", "green"),
    ]
    a, v = acceleration(signals), column(signals, "car.v")
    if all(w is None for w, _, _ in speeds) or not len(t):
        return None
    with stacked(6.6, 5.6, [2.6, 2.0, 1.1]) as (figure, (top, middle, bottom)):
        for ax in (top, middle, bottom):
            _gear_background(ax, bands, named=ax is top)
        for w, label, role in speeds:
            if w is not None:
                _line(top, t, w * RPM, role, label)
        top.set_ylabel("speed  [1/min]")
        top.set_ylim(bottom=min(0.0, top.get_ylim()[0]))
        _legend(top, 3, "lower right")
        if a is not None:
            _line(middle, t, a, "red", "acceleration of the car", linewidth=1.1)
        middle.set_ylabel("acceleration  [m/s²]")
        if v is not None:
            _line(bottom, t, v * 3.6, "purple", "speed of the car")
        bottom.set_ylabel("car  [km/h]")
        bottom.set_xlabel("time  [s]")
        bottom.set_xlim(float(t[0]), float(t[-1]))
        return themed(figure, "drive")


def zoom_elements(signals: Signals, shift: Shift) -> list[str]:
    """Elements that hand over in a shift: those whose mode changes between the old and the new gear."""
    t = signals.t
    before = int(np.searchsorted(t, shift.begin_s - 0.45))
    after = min(int(np.searchsorted(t, shift.end_s + 0.45)), len(t) - 1)
    found = []
    for name in analysis.elements(signals):
        mode = signals[f"{name}.mode"]
        if mode[max(before, 0)] != mode[after]:
            found.append(name)
    return found


def shift_zoom(signals: Signals, shift: Shift, bands: Sequence[Band], name: str = "zoom") -> str | None:
    """One shift in detail: torques, states, slip, pressures, acceleration (fig. 12 right of Otter 2000)."""
    begin, end = max(shift.begin_s - 0.55, 0.0), shift.end_s + 0.45
    signals = signals.between(begin, end)
    bands = [band for band in bands if band.end_s >= begin and band.begin_s <= end]
    names, t = zoom_elements(signals, shift), signals.t
    if not names:
        return None
    roles = dict(zip(names, ["blue", "orange", "purple", "teal", "pink", "gold", "green"] * 3, strict=False))
    pressed = [n for n in names if any(f"{n}.{s}" in signals.names for s in ("p", "p_command"))]
    heights = [1.9, 0.28 + 0.2 * len(names), 1.1, 1.3, 1.1]
    with stacked(6.6, 5.6, heights) as (figure, (torque, state, slip, pressure, car)):
        for ax in (torque, slip, pressure, car):
            _gear_background(ax, bands, named=False)
        for n in names:
            for suffix, ax, scale in (("tau", torque, 1.0), ("w_rel", slip, RPM)):
                values = column(signals, f"{n}.{suffix}")
                if values is not None:
                    _line(ax, t, values * scale, roles[n], n)
        torque.axhline(0.0, color=colour("muted"), linewidth=0.8)
        torque.set_ylabel("torque  [N·m]")
        torque.set_title(f"shift {shift.name} in detail")
        _mark_sign_changes(torque, t, {n: signals[f"{n}.tau"] for n in names if f"{n}.tau" in signals.names})
        _legend(torque, len(names), "best")
        _state_rows(state, [(n, analysis.mode_bands_recorded(signals, n)) for n in names])
        slip.set_ylabel("slip  [1/min]")
        for n in pressed:
            actual, asked = column(signals, f"{n}.p"), command(signals, n)
            if asked is not None:
                _line(pressure, t, asked * BAR, roles[n], "", linestyle=(0, (3, 2)), linewidth=1.0)
            if actual is not None:
                _line(pressure, t, actual * BAR, roles[n], "")
        pressure.plot([], [], color=colour("muted"), label="actual")
        pressure.plot([], [], color=colour("muted"), linestyle=(0, (3, 2)), linewidth=1.0, label="commanded")
        pressure.set_ylabel("pressure  [bar]")
        _legend(pressure, 1, "best")
        a = acceleration(signals)
        if a is not None:
            _line(car, t, a, "red", "acceleration")
        car.set_ylabel("a  [m/s²]")
        car.set_xlabel("time  [s]")
        car.set_xlim(begin, end)
        return themed(figure, name)


def _mark_sign_changes(ax: Axes, t: Any, torques: Mapping[str, Any]) -> None:
    """Where a torque goes through zero by more than a twentieth of its range: what good clutch control would avoid."""
    for name, tau in torques.items():
        span = float(tau.max() - tau.min()) if len(tau) else 0.0
        for instant in analysis.sign_changes(t, tau, 0.05 * span)[:1] if span > 1.0 else []:
            ax.annotate(
                f"{name} changes sign",
                (instant, 0.0),
                xytext=(-6, -20),
                textcoords="offset points",
                ha="right",
                fontsize=8.5,
                color=colour("fg"),
                arrowprops={"arrowstyle": "-", "color": colour("muted"), "linewidth": 0.8},
            )


def command(signals: Signals, element: str) -> Any:
    """Commanded pressure of an element [Pa]: the input of its actuator."""
    return column(signals, f"{element}.p_command", f"input.{element}.p")


def _state_rows(ax: Axes, rows: Sequence[tuple[str, Sequence[Band]]], height: float = 0.72) -> None:
    """One horizontal bar per element, coloured by mode."""
    begin = min((bands[0].begin_s for _, bands in rows if bands), default=0.0)
    width = (max((bands[-1].end_s for _, bands in rows if bands), default=0.0) - begin) / 2000
    for k, (_, every) in enumerate(rows):
        bands = every if len(every) <= SPANS_MAX else [b for b in every if b.end_s - b.begin_s >= width]
        for mode in MODE_COLOURS:
            spans = [(b.begin_s, b.end_s - b.begin_s) for b in bands if b.value == mode]
            if spans:
                ax.broken_barh(spans, (k - height / 2, height), facecolors=colour(MODE_COLOURS[mode]), linewidth=0)
    ax.set_yticks(range(len(rows)), [name for name, _ in rows])
    ax.set_ylim(len(rows) - 0.45, -0.55)
    ax.grid(False)
    ax.spines["left"].set_visible(False)


def states(modes: Sequence[ModeChange], signals: Signals | None, bands: Sequence[Band]) -> str | None:
    """All elements over the run as bands: stuck, sliding, free."""
    from matplotlib.patches import Patch

    if signals is not None and signals.n:
        rows = [(n, analysis.mode_bands_recorded(signals, n)) for n in analysis.elements(signals)]
    else:
        t_end = max((c.t_s for c in modes), default=0.0)
        rows = [(n, analysis.mode_bands(modes, n, t_end)) for n in dict.fromkeys(c.element for c in modes)]
    if not rows:
        return None
    with stacked(13.4, 1.0 + 0.28 * len(rows), [1.0]) as (figure, (ax,)):
        _gear_background(ax, bands, named=True)
        _state_rows(ax, rows)
        ax.set_xlabel("time  [s]")
        end = max((b.end_s for _, bs in rows for b in bs), default=1.0)
        ax.set_xlim(0.0, end)
        handles = [Patch(color=colour(MODE_COLOURS[m]), label=MODE_WORDS[m]) for m in MODE_COLOURS]
        figure.legend(handles=handles, loc="outside upper right", ncols=4)
        return themed(figure, "states")


def pressures(signals: Signals, bands: Sequence[Band]) -> str | None:
    """Commanded and actual pressures of all actuated elements."""
    names = [n.removesuffix(".p") for n in signals.names if n.endswith(".p") and signals.units.get(n) == "Pa"]
    names = [n for n in dict.fromkeys(names) if not n.startswith("input.")]
    if not names:
        return None
    # One scale for all: what matters is which element is pressed more.
    top = max([BAR * float(np.nanmax(signals[f"{n}.p"])) for n in names if signals.n] + [1.0])
    with stacked(13.4, 0.5 + 0.62 * len(names), [1.0] * len(names)) as (figure, axes):
        for n, ax in zip(names, axes, strict=True):
            _gear_background(ax, bands, named=ax is axes[0])
            asked = command(signals, n)
            if asked is not None:
                _line(ax, signals.t, asked * BAR, "orange", "commanded", linewidth=1.0)
            _line(ax, signals.t, signals[f"{n}.p"] * BAR, "blue", "actual")
            ax.set_ylim(-0.04 * top, 1.06 * top)
            ax.set_ylabel(n, rotation=0, ha="right", va="center", color=colour("fg"))
        axes[len(axes) // 2].annotate("bar", (1.005, 0.5), xycoords="axes fraction", color=colour("muted"), va="center")
        axes[-1].set_xlabel("time  [s]")
        axes[-1].set_xlim(float(signals.t[0]), float(signals.t[-1]))
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper right", ncols=2)
        return themed(figure, "pressures")


def torques(signals: Signals, bands: Sequence[Band]) -> str | None:
    """Torques of all elements over the run."""
    names = [n for n in analysis.elements(signals) if f"{n}.tau" in signals.names]
    if not names:
        return None
    roles = ["blue", "orange", "green", "purple", "teal", "red", "gold", "pink", "muted"]
    with stacked(13.4, 3.2, [1.0]) as (figure, (ax,)):
        _gear_background(ax, bands, named=True)
        for k, n in enumerate(names):
            style = "-" if k < len(roles) else (0, (4, 2))
            _line(ax, signals.t, signals[f"{n}.tau"], roles[k % len(roles)], n, linewidth=1.1, linestyle=style)
        ax.set_ylabel("torque  [N·m]")
        ax.set_xlabel("time  [s]")
        ax.set_xlim(float(signals.t[0]), float(signals.t[-1]))
        figure.legend(loc="outside right upper")
        return themed(figure, "torques")


def energy(supplied: Mapping[str, float], lost: Mapping[str, float], stored: Mapping[str, float]) -> str | None:
    """Two bars of equal length: what came in, and where it went."""
    came = {k: v for k, v in supplied.items() if v > 0}
    went = {**{k: v for k, v in stored.items() if v > 0}, **{k: v for k, v in lost.items() if v > 0}}
    went.update({k: -v for k, v in supplied.items() if v < 0})
    came.update({k: -v for k, v in [*stored.items(), *lost.items()] if v < 0})
    total = max(sum(came.values()), sum(went.values()))
    if total <= 0:
        return None
    roles = ["blue", "orange", "green", "purple", "teal", "red", "gold", "pink"]
    with stacked(13.4, 2.1, [1.0]) as (figure, (ax,)):
        for row, terms in enumerate((came, went)):
            left = 0.0
            small: list[str] = []
            ordered = sorted(terms.items(), key=lambda kv: -kv[1])
            for k, (label, value) in enumerate(ordered):
                role = roles[(k + 2 * row) % len(roles)]
                ax.barh(row, value * 1e-3, left=left * 1e-3, height=0.62, color=colour(role), edgecolor=colour("panel"))
                if value > 0.05 * total:
                    text = f"{label}\n{value * 1e-3:.0f} kJ"
                    where = ((left + value / 2) * 1e-3, row)
                    ax.annotate(text, where, ha="center", va="center", fontsize=8.5, color=colour("panel"))
                elif value > 2e-5 * total:
                    small.append(f"{label} {value * 1e-3:.1f}")
                left += value
            if small:
                shown = small[:9] + ([f"and {len(small) - 9} more"] if len(small) > 9 else [])
                ax.annotate(
                    "small ones [kJ]: " + ", ".join(shown),
                    (total * 1e-3, row + 0.42),
                    ha="right",
                    va="center",
                    fontsize=8,
                    color=colour("muted"),
                )
        ax.set_yticks([0, 1], ["came from", "went to"])
        ax.set_ylim(1.65, -0.45)
        ax.set_xlim(0.0, total * 1e-3)
        ax.set_xlabel("kJ")
        ax.grid(axis="y", visible=False)
        return themed(figure, "energy")


def link(signals: Signals) -> str | None:
    """Difference between the car's speed on the rig and in the vehicle model, at the time stamp of each answer."""
    own, other, stamp = (column(signals, name) for name in ("car.v", "vehicle.speed", "vehicle.t"))
    if own is None or other is None or stamp is None or not len(own):
        return None
    # in lockstep an answer arrives one tick after its time stamp
    residual = np.interp(stamp, signals.t, own) - other
    with stacked(13.4, 1.9, [1.0]) as (figure, (ax,)):
        _line(ax, signals.t, residual * 1e3, "teal", "rig - vehicle model", linewidth=1.0)
        ax.set_ylabel("Δv  [mm/s]")
        ax.set_xlabel("time  [s]")
        ax.set_xlim(float(signals.t[0]), float(signals.t[-1]))
        return themed(figure, "link")


def gear_strip(strip: GearStrip | None, shifts: Sequence[Shift], end_s: float) -> str | None:
    """Gears asked for, told and engaged over time, with the shifts; None: there is nothing of it."""
    rows = [] if strip is None else [("engaged", strip.true), ("told", strip.told), ("asked", strip.asked)]
    rows = [(name, [b for b in bands if b.value != "nothing"]) for name, bands in rows if bands]
    if not rows or end_s <= 0.0 or max(len(bands) for _, bands in rows) > SPANS_MAX:
        return None
    with stacked(13.4, 0.55 + 0.3 * len(rows), [1.0]) as (figure, (ax,)):
        for y, (_, bands) in enumerate(rows):
            for b in bands:
                none, reverse = b.value == "N", b.value == "R"
                # a gear has one shade in all rows
                light = b.value.isdigit() and int(b.value) % 2 == 1
                shade = colour("free" if none else "red" if reverse else "band_b" if light else "stuck")
                ax.barh(y, b.end_s - b.begin_s, left=b.begin_s, height=0.8, color=shade, linewidth=0)
                if b.end_s - b.begin_s > end_s / 60.0 and not none:
                    ink, middle = colour("fg" if light else "panel"), (b.begin_s + b.end_s) / 2.0
                    ax.text(middle, y, str(b.value), ha="center", va="center", color=ink, fontsize=8)
        for s in shifts:
            ax.axvspan(s.begin_s, s.end_s, color=colour("orange"), alpha=0.25, linewidth=0)
        ax.set_yticks(range(len(rows)), [name for name, _ in rows])
        ax.set_xlim(0.0, end_s)
        ax.set_xlabel("time s")
        ax.grid(False)
        ax.spines["left"].set_visible(False)
        return themed(figure, "gears")
