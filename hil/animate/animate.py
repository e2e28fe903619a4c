"""`torqueloop animate`, `torqueloop.animate`: a run, or the result of a simulation, as a picture that turns.

import torqueloop as tl

tl.animate("runs/20260101-120000-desk_4hp22", "run.html")
tl.animate(tl.read_run(folder), "shift.html", from_s=18.0, until_s=19.2)
tl.animate(Simulation(driveline).run(2.0, inputs), "offline.html", driveline)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from torqueloop.configs import installed_at
from torqueloop.core.analyse.shaft_motion import Motion, integral, motion
from torqueloop.core.components.files import load
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import ConfigError, RangeError, TorqueloopError
from torqueloop.core.simulate.results import Result
from torqueloop.hil.animate.content import Curves, Recorded, content, states
from torqueloop.hil.animate.page import page
from torqueloop.hil.animate.stage import Stage, stage
from torqueloop.hil.record.run_folder import INSTALLED
from torqueloop.hil.report.analysis import elements, gear_bands, shifts
from torqueloop.hil.runs.recorded_run import RecordedRun, read_run

Array = NDArray[np.float64]
#: samples a second at most and at least, and how many there are where neither holds
RATE_MAX, RATE_MIN, SAMPLES = 250.0, 60.0, 15000
#: a longer piece of a run is refused [s]
LONGEST_S = 1800.0
#: numbers in all plots at most
PLOT_VALUES = 300_000
#: factors on what a body has turned, and the angle that is to be seen [rad]
FACTORS, SEEN = (1, 2, 5, 10, 20, 50), math.radians(5.0)
RPM, BAR = 30.0 / math.pi, 1e-5


class _Signals(Mapping[str, Array]):
    """Signals of a run or of a result, of a stretch of time."""

    def __init__(self, source: Mapping[str, Array] | Result, t: Array, part: slice) -> None:
        self._source, self._part, self.t = source, part, t[part]
        self.names = list(source.names) if isinstance(source, Result) else list(source)
        self._known = set(self.names)

    def __getitem__(self, name: str) -> Array:
        if name not in self._known:
            raise KeyError(name)
        return np.asarray(self._source[name][self._part], float)

    def __contains__(self, name: object) -> bool:
        return name in self._known

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def animate(
    run: RecordedRun | Result | Path | str, path: Path | str, driveline: Driveline | Path | str | None = None,
    *, from_s: float | None = None, until_s: float | None = None,
) -> Path:  # fmt: skip
    """Write the animation of a run (its directory, or read) or of a simulation's result, and return the path.

    driveline: the one that was simulated; for a run it is needed only if its config/ does not name one. from_s,
    until_s: the part that is shown [s]. ConfigError with the names of the missing signals if too few were recorded.
    """
    if isinstance(run, (str, Path)):
        run = read_run(run)
    found = _driveline(run, driveline)
    signals = _signals(run, from_s, until_s)
    made = stage(found)
    every = _every(signals.t)
    moved = motion(made.parts, made.topology, made.shafts, signals.t, signals, every)
    recorded = _recorded(run, made, moved, signals, every)
    target = Path(path)
    target.write_text(page(content(made, moved, recorded)), encoding="utf-8")
    return target


def _driveline(run: RecordedRun | Result, given: Driveline | Path | str | None) -> Driveline:
    if isinstance(given, Driveline):
        return given
    if given is not None:
        return load(given)
    if isinstance(run, Result):
        raise ConfigError("a result does not contain its driveline: animate(result, path, driveline)", key="driveline")
    return driveline_of(run)


def driveline_of(run: RecordedRun) -> Driveline:
    """The driveline of a run, from its config/. ConfigError if config/ does not contain it."""
    from torqueloop.hil.rig.resolve.plan import load_plan

    if run.info.rig_file is not None and (run.path / run.info.rig_file).is_file():
        with installed_at(run.path / INSTALLED):
            return load_plan(run.path / run.info.rig_file, run.info.overrides).driveline
    for file in sorted((run.path / "config").glob("*.toml")):
        try:
            found = load(file)
        except TorqueloopError:
            continue  # a part of the driveline, or another file
        if found.name == run.info.powertrain:
            return found
    raise ConfigError(f"{run.path}: config/ contains no driveline that can be read", key="driveline",
                      hint="give its file: --driveline FILE")  # fmt: skip


def _signals(run: RecordedRun | Result, from_s: float | None, until_s: float | None) -> _Signals:
    t = run.time if isinstance(run, Result) else run.t
    begin, end = -math.inf if from_s is None else from_s, math.inf if until_s is None else until_s
    if not end > begin:
        raise RangeError("{key} = {value} is out of range", key="until", value=end, allowed=f"> from = {begin:g} s")
    first, last = int(np.searchsorted(t, begin)), int(np.searchsorted(t, end, "right"))
    if last - first < 2:
        span = f"{t[0]:g} .. {t[-1]:g} s" if len(t) else "nothing"
        raise RangeError("fewer than two samples to show", key="from", value=from_s, allowed=f"recorded is {span}")
    if t[last - 1] - t[first] > LONGEST_S:
        raise RangeError("{value} s are too long for one page", key="until", value=round(t[last - 1] - t[first], 3),
                         allowed=f"at most {LONGEST_S:g} s: choose a part by --from and --until")  # fmt: skip
    return _Signals(run if isinstance(run, Result) else run.signals, t, slice(first, last))


def _every(t: Array) -> int:
    """Every how many samples are taken."""
    span = float(t[-1] - t[0])
    rate = min(RATE_MAX, max(RATE_MIN, SAMPLES / span))
    return max(1, int((len(t) - 1) / span / rate + 1e-9))


def _recorded(
    run: RecordedRun | Result, made: Stage, moved: Motion, signals: _Signals, every: int
) -> Recorded:  # fmt: skip
    attitude = _attitude(made, signals, every)
    factor = _factor(attitude)
    name, words, gears, changes = _words(run, made, signals)
    low, high = float(signals.t[0]), float(signals.t[-1])
    return Recorded(
        title=name,
        subtitle=f"{words} · {low:.3f} to {high:.3f} s",
        states=_states(signals),
        gears=[g for g in gears if g[1] >= low and g[0] <= high],
        shifts=[s for s in changes if s[1] >= low and s[2] <= high],
        curves=_curves(signals),
        attitude=attitude,
        exaggeration=factor,
        notes=_notes(made, moved, attitude is not None, factor, signals),
    )


def _words(
    run: RecordedRun | Result, made: Stage, signals: _Signals
) -> tuple[str, str, list[tuple[float, float, str]], list[tuple[str, float, float]]]:
    """(title, what it is, gears, shifts)."""
    if isinstance(run, Result):
        ratios = {name: float(g.ratio) for name, g in made.driveline.gears.items() if g.ratio is not None}
        bands = gear_bands(signals, ratios)  # type: ignore[arg-type]
        name, words, found = made.driveline.name, "simulated offline", shifts(bands)
    else:
        info, bands, found = run.info, run.report.bands, run.report.shifts
        name = run.report.run.name
        words = " · ".join(w for w in (info.powertrain or "", f"{info.clock} clock", info.started[:10]) if w)
    gears = [(b.begin_s, b.end_s, str(b.value)) for b in bands]
    return name, words, gears, [(s.name, s.begin_s, s.end_s) for s in found]


def _states(signals: _Signals) -> dict[str, tuple[Array, NDArray[np.int8]]]:
    found = {}
    for name in elements(signals):  # type: ignore[arg-type]
        if f"{name}.tau" in signals or f"{name}.p" in signals or name + ".w_rel" in signals:
            tau = signals[f"{name}.tau"] if f"{name}.tau" in signals else None
            found[name] = states(signals.t, np.rint(signals[f"{name}.mode"]), tau)
    return found


def _curves(signals: _Signals) -> list[Curves]:
    """What is plotted: the usual signals that were recorded."""
    names = list(signals)
    own = [n.removesuffix(".mode") for n in names if n.endswith(".mode")]
    own = [n for n in own if f"{n}.tau" in signals]
    groups: Sequence[tuple[str, str, float, list[str]]] = (
        ("Speeds", "1/min", RPM, [n for n in ("engine.w", "turbine.w", "out.w") if n in signals]),
        ("Torques of elements", "Nm", 1.0, [f"{n}.tau" for n in own if np.any(signals[f"{n}.tau"])]),
        ("Pressures", "bar", BAR, [f"{n}.p" for n in own if f"{n}.p" in signals]),
        ("Acceleration of the car", "m/s²", 1.0, [n for n in ("car.a",) if n in signals]),
    )
    groups = [g for g in groups if g[3]]
    if not groups:
        speeds = [n for n in names if n.endswith(".w")][:6]
        groups = [("Speeds", "1/min", RPM, speeds)] if speeds else []
    lines = sum(len(g[3]) + 1 for g in groups)
    step = max(1, math.ceil(len(signals.t) * lines / PLOT_VALUES))
    t = signals.t[::step]
    return [
        Curves(title, unit, t, [(n.rpartition(".")[0], signals[n][::step] * factor) for n in members])
        for title, unit, factor, members in groups
    ]


def _attitude(made: Stage, signals: _Signals, every: int) -> Array | None:
    """Quaternion of the body at the samples; None where it was not recorded."""
    if made.body is None:
        return None
    name = made.body.name
    if made.body.kind == "body":
        parts = [f"{name}.q{k}" for k in range(4)]
        return np.stack([signals[p][::every] for p in parts], 1) if all(p in signals for p in parts) else None
    rates = [next((n for n in (f"{name}.w_{a}", f"input.{name}.w_{a}") if n in signals), "") for a in "xyz"]
    if not all(rates):
        return None
    return turned(signals.t, np.stack([signals[n] for n in rates], 1))[::every]


def turned(t: Array, w: Array) -> Array:
    """Attitude from rates along the axes of the body: q_k+1 = q_k exp(theta/2), theta = integral of w + h²/12 w_k ×
    w_k+1 (Magnus, order 4)."""
    turns = np.stack([np.diff(integral(t, w[:, k])) for k in range(3)], 1)
    q = np.zeros((len(t), 4))
    q[0, 0] = 1.0
    for k, h in enumerate(np.diff(t)):
        v = turns[k] + h * h / 12.0 * np.cross(w[k], w[k + 1])
        half = 0.5 * float(np.linalg.norm(v))
        s = 0.5 * np.sinc(half / math.pi)
        a, (b, c, d) = q[k], s * v
        e = math.cos(half)
        q[k + 1] = (
            a[0] * e - a[1] * b - a[2] * c - a[3] * d, a[0] * b + a[1] * e + a[2] * d - a[3] * c,
            a[0] * c - a[1] * d + a[2] * e + a[3] * b, a[0] * d + a[1] * c - a[2] * b + a[3] * e,
        )  # fmt: skip
    return q


def _factor(attitude: Array | None) -> float:
    """How much larger than it is the body's turn is drawn."""
    if attitude is None or not len(attitude):
        return 1.0
    dot = np.clip(np.abs(attitude @ attitude[0]), 0.0, 1.0)
    most = 2.0 * float(np.arccos(dot.min()))
    return float(next((f for f in FACTORS if f * most >= SEEN), FACTORS[-1]))


def _notes(made: Stage, moved: Motion, body: bool, factor: float, signals: _Signals) -> list[str]:
    """What the page says about itself."""
    rate = (len(moved.t) - 1) / float(moved.t[-1] - moved.t[0])
    said = [
        f"Angles and speeds of {len(moved.angle)} shafts at {rate:.0f} samples a second, cubic between them.",
        "The radii follow from the tooth numbers, with one size of ring. The numbers of planets and the positions of "
        "packs and shafts follow from the connections of the file: this is not the drawing of a real gearbox.",
    ]
    if made.section.crossings:
        crossings = made.section.crossings
        said.append(f"In {crossings} positions shafts are drawn through each other: the search found no other path.")
    if moved.integrated:
        said.append(f"Integrated from recorded speeds, as no angle was recorded: {', '.join(moved.integrated)}.")
    if moved.differentiated:
        said.append(f"Speeds differentiated from recorded angles: {', '.join(moved.differentiated)}.")
    if body and made.body is not None:
        times = "as large as it was" if factor == 1.0 else f"{factor:g} times as large as it was"
        said.append(f"The turn of {made.body.name} since the first sample is drawn {times}.")
    elif made.body is not None:
        said.append(f"The motion of {made.body.name} was not recorded, so it does not move.")
    if made.left_out:
        said.append(f"Not drawn: {', '.join(made.left_out)}.")
    missing = [c.name for c in made.section.couplings
               if c.kind in ("clutch", "brake", "freewheel") and f"{c.name}.mode" not in signals]  # fmt: skip
    if missing:
        said.append(f"State not recorded (grey): {', '.join(missing)}.")
    return said
