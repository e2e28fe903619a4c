"""Cost of one step against the size of the driveline: 1 to 99 friction elements, 1 to 30 planetary sets.

    python scripts/bench/bench_size.py [--out build/bench_size] [--quick] [--order 2|4] [--no-instructions]

Two families of chains, generic kernel, step 1 ms:

    clutches   n shafts, neighbours joined by a clutch, a brake on each: 2n - 1 friction elements, n speeds
    planets    k planetary sets in series, alternately reducing and speeding up, a brake on each ring: k elements,
               k + 1 speeds

and four states of each:

    sliding    every element slides
    stuck      every element sticks (in the clutch chain more of them than there are speeds)
    event      one element breaks away and catches again, all others stick: one event in five steps, whatever the size
    storm      every element breaks away and catches again and again: the number of events grows with the size

Wall time is the median over rounds of the same stretch from the same state. Instruction counts come from callgrind
(valgrind) and repeat exactly; the first pass over the stretch is counted too, because new sets of stuck elements are
factorised there. The cost of one event is (stretch with events - the same number of steps without) / events. Growth
exponents are slopes in the double logarithmic plot over the larger half of the sizes. The demand, at most quadratic,
is on a step with a given number of events and on one event; a step of the storm has more events the larger the chain.
Writes bench_size.json and bench_size.png.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from bench_step import cpu_name
from instruction_counts import CountingError, Job, instruction_counts
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components import Brake, Clutch, IdealPlanetary, Inertia, Torque
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.tables import Table1D
from torqueloop.cython_kernels.kernel.kernel import KernelModel, KernelState
from torqueloop.cython_kernels.model.model_arrays import ModelArrays

ROOT = Path(__file__).resolve().parents[2]
H = 1e-3
#: steps of a measured stretch, and before it
STEPS, WARM = 400, 400
#: steps of one period of the exciting torque in `event` and `storm`
PERIOD = {"event": 20, "storm": 100}
STATES = ("sliding", "stuck", "event", "storm")
SHAFTS = (1, 2, 3, 5, 8, 13, 20, 32, 50)
SETS = (1, 2, 3, 5, 8, 12, 18, 24, 30)
#: the demand on the growth of a step with a given number of events, and of one event
DEMAND = 2.0
Array = NDArray[np.float64]


# --- the chains -----------------------------------------------------------------------------------------------------
def clutch_chain(n: int, state: str, order: int) -> Driveline:
    """n shafts J1 .. Jn with torque sources T1 .. and brakes B1 ..; clutches C1 .. between neighbours."""
    d = Driveline(f"{n} shafts", order=order)
    mue = Table1D((0.0, 50.0, 400.0), (0.15, 0.13, 0.12))
    for k in range(1, n + 1):
        w0 = (150.0 if k % 2 else 50.0) if state == "sliding" else 0.0
        d.add(f"J{k}", Inertia(J=0.1, w0=w0))
        d.add(f"B{k}", Brake(fn_max=1000.0, mue_pos=mue))
        d.add(f"T{k}", Torque())
        d.connect(f"J{k}.flange_a", f"B{k}.flange_a", f"T{k}.flange")
    for k in range(1, n):
        d.add(f"C{k}", Clutch(fn_max=1000.0, mue_pos=mue))
        d.connect(f"C{k}.flange_a", f"J{k}.flange_a")
        d.connect(f"C{k}.flange_b", f"J{k + 1}.flange_a")
    return d


def planet_chain(k_sets: int, state: str, order: int) -> Driveline:
    """Sets P1 .. between shafts J0 .. Jk, ring shafts R1 .. with brakes B1 .. and torque sources T1 .. (T0 on J0)."""
    d = Driveline(f"{k_sets} planetary sets", order=order)
    mue = Table1D((0.0, 50.0, 400.0), (0.15, 0.13, 0.12))
    d.add("J0", Inertia(J=0.1, w0={"sliding": 200.0, "stuck": 100.0}.get(state, 0.0)))
    d.add("T0", Torque())
    d.connect("J0.flange_b", "T0.flange")
    for k in range(1, k_sets + 1):
        d.add(f"J{k}", Inertia(J=0.1))
        d.add(f"R{k}", Inertia(J=0.1, w0=(90.0 if k % 2 else 140.0) if state == "sliding" else 0.0))
        d.add(f"P{k}", IdealPlanetary(ratio=Fraction(2)))
        d.add(f"B{k}", Brake(fn_max=1000.0, mue_pos=mue))
        d.add(f"T{k}", Torque())
        inner, outer = ("sun", "carrier") if k % 2 else ("carrier", "sun")
        d.connect(f"P{k}.{inner}", f"J{k - 1}.flange_b")
        d.connect(f"P{k}.{outer}", f"J{k}.flange_a")
        d.connect(f"P{k}.ring", f"R{k}.flange_a", f"B{k}.flange_a", f"T{k}.flange")
    return d


@dataclass
class Case:
    """One family, size and state; then what was measured."""

    family: str
    size: int
    state: str
    order: int
    arrays: ModelArrays = field(repr=False)
    start: bytes = field(repr=False)
    inputs: Array = field(repr=False)
    elements: int = 0
    speeds: int = 0
    counters: dict[str, int] = field(default_factory=dict)
    ns: float = math.nan
    ns_min: float = math.nan
    instructions: float = math.nan
    instructions_first: float = math.nan
    where: dict[str, float] = field(default_factory=dict)
    #: per event; only with events
    ns_event: float = math.nan
    instructions_event: float = math.nan

    @property
    def events(self) -> float:
        """Events per step."""
        return self.counters["events"] / STEPS


def excitation(names: Sequence[str], family: str, size: int, state: str, steps: int) -> Array:
    """Inputs (steps, 3, nin): start, middle, end of each step. Capacity at standstill is 150 N.m times f_normalized."""
    times = np.arange(steps)[:, None] + np.array([0.0, 0.5, 1.0])
    pressed = {"sliding": 0.002, "stuck": 1.0, "event": 1.0, "storm": 0.01}[state]
    values = np.zeros((steps, 3, len(names)))
    for column, name in enumerate(names):
        owner = name.split(".")[0]
        number = int(owner[1:])
        if owner[0] in "BC":
            last = owner[0] == "B" and number == size
            only_one = state == "event" and family == "clutches" and owner[0] == "B" and not last
            weak = state == "storm" and owner[0] == "C"
            values[:, :, column] = 0.0 if only_one else (0.01 if state == "event" and last else pressed)
            if weak:
                values[:, :, column] = 0.002
        elif state == "stuck":
            values[:, :, column] = 1.0 if number <= 1 else 0.0
        elif state in PERIOD and (state == "storm" or number == size):
            angle = 2.0 * np.pi * times / PERIOD[state] + 2.399963 * number
            values[:, :, column] = 2.5 * np.sin(angle)
    return values


FAMILIES: dict[str, tuple[Callable[[int, str, int], Driveline], tuple[int, ...]]] = {
    "clutches": (clutch_chain, SHAFTS),
    "planets": (planet_chain, SETS),
}


def prepare(family: str, size: int, state: str, order: int) -> Case:
    """Compile, run into the stretch, count what happens in it."""
    compiled = compile_driveline(FAMILIES[family][0](size, state, order))
    arrays = compiled.arrays
    inputs = excitation(compiled.input_names, family, size, state, WARM + STEPS)
    model = KernelModel(arrays, H, "generic")
    run = KernelState(model)
    if model.run(run, inputs[:WARM]) != WARM:
        raise SystemExit(f"{family} {size} {state}: the run broke down")
    start, before = run.to_bytes(), run.counters
    case = Case(family, size, state, order, arrays, start, np.ascontiguousarray(inputs[WARM:]))
    model.run(run, case.inputs)
    case.elements, case.speeds = model.sizes["friction"], model.sizes["n"]
    case.counters = {k: v - before[k] if not k.endswith("max") else v for k, v in run.counters.items()}
    stuck = int(np.sum(run.modes == 0))
    expected = {"sliding": 0, "stuck": case.elements}.get(state)
    if expected is not None and (stuck != expected or case.counters["events"]):
        raise SystemExit(f"{family} {size} {state}: {stuck} of {case.elements} stick, {case.counters}")
    return case


# --- measuring ------------------------------------------------------------------------------------------------------
def wall_time(case: Case, rounds: int) -> None:
    """Median and minimum of ns per step; the patterns of the stretch are in the cache."""
    model = KernelModel(case.arrays, H, "generic")
    state = KernelState(model)
    samples = []
    for _ in range(rounds + 1):
        state.from_bytes(case.start)
        begin = time.perf_counter_ns()
        model.run(state, case.inputs)
        samples.append((time.perf_counter_ns() - begin) / STEPS)
    case.ns, case.ns_min = float(np.median(samples[1:])), float(np.min(samples[1:]))


def count_instructions(cases: list[Case], progress: Callable[[], None]) -> str | None:
    """Fill in instructions per step, of the first pass and of one whose patterns are known; or say why not."""
    try:
        counts = instruction_counts([Job(c.arrays, H, c.start, c.inputs) for c in cases], progress)
    except CountingError as error:
        return str(error)
    for case, (once, twice) in zip(cases, counts, strict=True):
        case.instructions_first = sum(once.values()) / STEPS
        case.instructions = (sum(twice.values()) - sum(once.values())) / STEPS
        shares = {k: (v - once.get(k, 0.0)) / (STEPS * case.instructions) for k, v in twice.items()}
        case.where = dict(sorted(((k, v) for k, v in shares.items() if v >= 0.005), key=lambda x: -x[1]))
    return None


def per_event(cases: list[Case]) -> None:
    """Cost of one event: what the stretch costs beyond the dearer of the two quiet states, over its events."""
    by_key = {(c.family, c.size, c.state): c for c in cases}
    for case in cases:
        if case.counters["events"]:
            quiet = [by_key[case.family, case.size, s] for s in ("sliding", "stuck")]
            case.ns_event = (case.ns - max(q.ns for q in quiet)) / case.events
            case.instructions_event = (case.instructions - max(q.instructions for q in quiet)) / case.events


# --- results --------------------------------------------------------------------------------------------------------
def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Slope of log(value) over log(size), larger half of the sizes; NaN when that is too little."""
    points = [(s, v) for s, v in zip(sizes, values, strict=True) if v > 0.0 and math.isfinite(v)]
    points = points[-max(4, (len(points) + 1) // 2) :]
    if len(points) < 4:
        return math.nan
    logs = np.log(np.array(points))
    return float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])


#: what growth is fitted for: label -> (states, attribute of Case)
CURVES: dict[str, tuple[tuple[str, ...], str]] = {
    "ns per step": (STATES, "ns"),
    "instructions per step": (STATES, "instructions"),
    "instructions per step, first pass": (("event", "storm"), "instructions_first"),
    "ns per event": (("event", "storm"), "ns_event"),
    "instructions per event": (("event", "storm"), "instructions_event"),
}


def exponents(cases: list[Case]) -> list[dict[str, Any]]:
    """Growth of every curve with the number of friction elements."""
    rows = []
    for label, (states, attribute) in CURVES.items():
        for family in FAMILIES:
            for state in states:
                chosen = [c for c in cases if (c.family, c.state) == (family, state)]
                value = exponent([c.elements for c in chosen], [getattr(c, attribute) for c in chosen])
                if math.isfinite(value):
                    demanded = state != "storm" or "event" in label
                    rows.append(
                        {"what": label, "family": family, "state": state, "exponent": round(value, 3),
                         "within_demand": value <= DEMAND if demanded else None}
                    )  # fmt: skip
    return rows


def draw(cases: list[Case], growth: list[dict[str, Any]], path: Path, title: str) -> None:
    """Log-log over the number of elements: a column for each family, a row for each of CURVES that was measured."""
    from matplotlib.figure import Figure

    curves = {label: at for label, (_, at) in CURVES.items() if any(math.isfinite(getattr(c, at)) for c in cases)}
    found = {(g["what"], g["family"], g["state"]): g["exponent"] for g in growth}
    figure = Figure(figsize=(10.5, 3.4 * len(curves)), layout="constrained")
    grid = figure.subplots(len(curves), len(FAMILIES), sharex="col", sharey="row", squeeze=False)
    for line, (label, attribute) in zip(grid, curves.items(), strict=True):
        for ax, family in zip(line, FAMILIES, strict=True):
            for state, mark in zip(STATES, "osD^", strict=True):
                chosen = [c for c in cases if (c.family, c.state) == (family, state) and getattr(c, attribute) > 0.0]
                power = found.get((label, family, state), math.nan)
                text = f"{state}, exponent {power:.2f}" if math.isfinite(power) else state
                if chosen:
                    ax.loglog(
                        [c.elements for c in chosen], [getattr(c, attribute) for c in chosen], marker=mark, label=text
                    )
            ax.set(xlabel="friction elements", ylabel=label, title=family)
            ax.grid(True)
            ax.legend(fontsize=8)
    figure.suptitle(title)
    figure.savefig(path, dpi=130)


def show(cases: list[Case], growth: list[dict[str, Any]], reason: str | None) -> None:
    """Tables of the costs and of the exponents."""
    table = Table(title="cost of one step", title_justify="left")
    for name in ("family", "elements", "speeds", "state", "ns/step", "instr/step", "first pass", "events/step", "most",
                 "instr/event", "fallbacks", "most expensive functions"):  # fmt: skip
        table.add_column(name)
    for c in cases:
        first = ", ".join(f"{k} {100 * v:.0f} %" for k, v in list(c.where.items())[:3])
        figures = (c.ns, c.instructions, c.instructions_first, c.events, c.counters["splits_max"],
                   c.instructions_event, c.counters["fallbacks"])  # fmt: skip
        numbers = [f"{x:,.2f}" if x is c.events else f"{x:,.0f}" for x in figures]
        table.add_row(c.family, str(c.elements), str(c.speeds), c.state, *numbers, first)
    fitted = Table(title=f"growth exponents, larger half of the sizes (demand: at most {DEMAND:g})",
                   title_justify="left")  # fmt: skip
    for name in ("what", "family", "state", "exponent", ""):
        fitted.add_column(name)
    words = {True: "", False: "above the demand", None: "no demand: the number of events grows with the size"}
    for g in growth:
        fitted.add_row(g["what"], g["family"], g["state"], f"{g['exponent']:.2f}", words[g["within_demand"]])
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(table, fitted)
    if reason:
        console.print(f"no instruction counts: {reason}")


def plain(value: Any) -> Any:
    """NaN is null in JSON."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench_size", help="folder of the results")
    parser.add_argument("--quick", action="store_true", help="sizes up to about 25 elements only")
    parser.add_argument("--order", type=int, choices=(2, 4), default=2, help="order of the integrator (default 2)")
    parser.add_argument("--rounds", type=int, default=15, help="rounds of the timed stretch (default 15)")
    parser.add_argument("--no-instructions", action="store_true", help="wall time only")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    cases: list[Case] = []
    reason: str | None = "switched off" if options.no_instructions else None
    with Progress(console=Console(stderr=True), transient=True) as bar:
        for family, (_, sizes) in FAMILIES.items():
            for size in bar.track(sizes[:-3] if options.quick else sizes, description=f"wall time, {family}"):
                for state in STATES:
                    cases.append(prepare(family, size, state, options.order))
                    wall_time(cases[-1], options.rounds)
        if reason is None:
            counting = bar.add_task("instructions", total=2 * len(cases))
            reason = count_instructions(cases, lambda: bar.advance(counting))
    per_event(cases)
    growth = exponents(cases)
    options.out.mkdir(parents=True, exist_ok=True)
    hidden = ("arrays", "start", "inputs")
    result = {
        "machine": f"{platform.machine()} {platform.release()} {cpu_name()}",
        "order": options.order,
        "h_s": H,
        "steps": STEPS,
        "instructions_missing": reason,
        "cases": [{k: plain(v) for k, v in vars(c).items() if k not in hidden} for c in cases],
        "exponents": growth,
        "demand": DEMAND,
    }
    (options.out / "bench_size.json").write_text(json.dumps(result, indent=1), encoding="utf-8")
    draw(
        cases, growth, options.out / "bench_size.png", f"generic kernel, order {options.order}, h = 1 ms, {cpu_name()}"
    )
    show(cases, growth, reason)
    print(f"written: {options.out / 'bench_size.json'}, {options.out / 'bench_size.png'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
