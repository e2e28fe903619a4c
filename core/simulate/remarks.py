"""What a run asked of its steps and did not get: one line each, with the element it concerns and the remedy.

fallbacks      a step had more events than are handled one by one, and a plain impulse finished it
steep          the torques of friction that is steep at its slip, of gaps, joint shafts or brakes were not found
energy         the energy of the run does not close
relaxed        the boxed problem of a decision was ended by the rule that only takes energy out
heat           friction gave heat back
ringing        a torque turns round at every sample: what is shown is the step's own oscillation
reversals      an input turns round more than once within a step, which sees three points of it
oscillation    the springs oscillate faster than four steps a period (`resolution`)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.compile.compiler import CompiledModel
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.signals import Constant, Signal
from torqueloop.core.simulate.resolution import unresolved

Array = NDArray[np.float64]
#: a torque that turns round at so many samples in a row rings; a resolved oscillation turns round at every second one
RINGS = 8
#: of the largest torque of the run: changes below it are rounding and noise, not ringing
VISIBLE = 1e-3
#: points at which an input is looked at within a step; steps that are looked at, beside those with several events
POINTS, SPREAD = 8, 256
#: elements that a remark names at most
NAMED = 3
#: kinds of remarks with which a run is not to be relied on
FAULTS = ("fallbacks", "steep", "energy")
#: of the energy turned over: with more of it open it does not close. (What steps leave open that resolve a driveline is
#: below 1e-5, and 1e-3 where they hardly do.)
ENERGY_OPEN = 1e-2


@dataclass(frozen=True)
class Remark:
    """One thing that was not resolved."""

    #: as in the table above
    kind: str
    #: how often: steps, samples, decisions
    count: int
    #: elements or inputs it concerns; empty where the kernel does not know
    elements: tuple[str, ...]
    #: what happened, and the remedy
    text: str

    def __str__(self) -> str:
        of = f"{', '.join(self.elements)}: " if self.elements else ""
        return of + self.text


def sought(model: CompiledModel) -> tuple[str, ...]:
    """Elements whose torques a step seeks with the speeds: joint shafts, gaps, brakes, friction over the slip."""
    parts = model.parts
    names = [
        *(p.owner for p in parts.joints.shafts),
        *(p.owner for p in parts.contacts if p.n != 1.0),
        *(p.owner for p in parts.eddies),
        *(name for name, mu in zip(model.friction_names, model.arrays.fr["mu"], strict=True) if mu >= 0),
    ]
    return tuple(dict.fromkeys(names))


def of_energy(residual: float) -> tuple[Remark, ...]:
    """From what is left open of the energy turned over."""
    if residual <= ENERGY_OPEN:
        return ()
    text = f"{residual:.1e} of the energy turned over is not accounted for: take more substeps"
    return (Remark("energy", 1, (), text),)


def of_counters(
    before: Mapping[str, int], after: Mapping[str, int], changes: Iterable[tuple[int, str]], seek: Sequence[str] = ()
) -> list[Remark]:
    """From two readings of the kernel's counters; changes: (step, element) of every change of mode between them; seek:
    the elements whose torques are sought."""
    count = {name: after[name] - before.get(name, 0) for name in after}
    beyond = count["beyond_standstill"]
    texts = {
        "fallbacks": (count["fallbacks"], "a plain impulse, which is of first order, finished {} steps with too many "
                      "events: take more substeps"),
        "steep": (count["steep_unsolved"], "torques were not found in {} steps: take more substeps or, of friction, a "
                  "curve that rises less steeply"),
        "relaxed": (count["relaxed"], "{} decisions about what sticks ended by removing energy: elements work against "
                    "each other and share their torque arbitrarily, open one of them"),
        "heat": (count["negative_heat"] - beyond, "a friction element gave heat back {} times: its friction "
                 "coefficient is below 0 at some slip, correct its curve"),
        "beyond": (beyond, "a friction element gave heat back {} times: its slip ended within a step that is too "
                   "long for how its friction rises from standstill, take more substeps"),
    }  # fmt: skip
    concerned = {"fallbacks": _busiest(changes), "steep": tuple(seek[:NAMED])}
    return [
        Remark("heat" if kind == "beyond" else kind, n, concerned.get(kind, ()), text.format(n))
        for kind, (n, text) in texts.items()
        if n > 0
    ]


def _busiest(changes: Iterable[tuple[int, str]]) -> tuple[str, ...]:
    """The elements that change most often in the steps with most changes."""
    in_step: dict[int, Counter[str]] = {}
    for step, element in changes:
        in_step.setdefault(step, Counter())[element] += 1
    most = max((found.total() for found in in_step.values()), default=0)
    if most < 2:
        return ()
    total = sum((found for found in in_step.values() if found.total() == most), Counter[str]())
    return tuple(name for name, _ in total.most_common(NAMED))


def ringing(torques: Mapping[str, Array]) -> list[Remark]:
    """Elements whose torque, sampled at the ends of steps, turns round at every sample for a while."""
    found = []
    for element, torque in torques.items():
        count = _turns(torque)
        if count:
            text = f"its torque turns round at {count} samples one after the other: take more substeps, or more damping"
            found.append(Remark("ringing", count, (element,), text))
    return found


def _turns(torque: Array) -> int:
    """Samples in stretches of RINGS and more at which the torque turns round."""
    if len(torque) < RINGS + 2:
        return 0
    change = np.diff(torque)
    large = np.abs(change) > VISIBLE * np.abs(torque).max(initial=0.0)
    turns = (change[1:] * change[:-1] < 0.0) & large[1:] & large[:-1]
    ends = np.flatnonzero(np.diff(np.concatenate([[False], turns, [False]]).astype(np.int8)))
    lengths = ends[1::2] - ends[::2]
    return int(lengths[lengths >= RINGS].sum())


def reversals(names: Sequence[str], signals: Sequence[Signal], first: int, steps: int, h: float) -> list[Remark]:
    """Inputs that turn round more than once within one of the steps first ... first + steps - 1 of h [s]."""
    found = []
    spread = first + np.arange(0, steps, max(1, steps // SPREAD))
    for name, signal in zip(names, signals, strict=True):
        if isinstance(signal, Constant):
            continue
        events = np.floor(np.array(signal.event_times(first * h, (first + steps) * h)) / h).astype(np.int64)
        several, times = np.unique(events, return_counts=True)
        count = _turning(signal, np.union1d(spread, several[times > 1]), h)
        if count:
            text = f"turns round more than once in {count} steps, which see three points of it: take more substeps"
            found.append(Remark("reversals", count, (f"input {name}",), text))
    return found


def _turning(signal: Signal, steps: NDArray[np.int64], h: float) -> int:
    """Of these steps, how many have more than one extreme inside."""
    t = (steps[:, None] + np.arange(POINTS + 1) / POINTS) * h
    change = np.diff(signal.sample(t.ravel(), +1).reshape(t.shape), axis=1)
    change[np.abs(change) <= 1e-9 * np.abs(change).max(initial=0.0)] = 0.0
    # where it stands still it goes on as it did before
    way = np.sign(change)
    for k in range(1, POINTS):
        way[:, k] = np.where(way[:, k] == 0.0, way[:, k - 1], way[:, k])
    return int(((way[:, 1:] * way[:, :-1] < 0).sum(axis=1) > 1).sum())


def oscillations(model: CompiledModel, h: float, steps: int) -> list[Remark]:
    """Springs that oscillate faster than steps of h [s] resolve."""
    return [
        Remark("oscillation", steps, (o.element,), f"oscillates at {o.frequency_Hz:.0f} Hz, faster than four steps a "
               f"period: take {o.substeps} times as many substeps, or make the shaft rigid")
        for o in unresolved(model, h)
    ]  # fmt: skip


def backward(model: CompiledModel, values: Array) -> list[tuple[str, str]]:
    """(converter, text) of each converter whose pump and turbine both turn backward; values: samples x outputs."""
    found = []
    for name in model.converter_names:
        speeds = [values[:, model.output_index(f"{name}.{s}")] for s in ("w_pump", "w_turbine")]
        rows = np.flatnonzero((speeds[0] < 0.0) & (speeds[1] < 0.0))
        if len(rows):
            first = " and ".join(f"{speed[rows[0]]:.4g}" for speed in speeds)
            text = f"pump and turbine of {name!r} both turn backward (first at {first} rad/s, {len(rows)} samples): "
            text += "its curves do not say what it does then, it acts as a fluid coupling"
            found.append((name, text))
    return found
