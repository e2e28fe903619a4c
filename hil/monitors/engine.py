"""The kernel of the monitors from their data: in the tick of a rig, and over a recording, the same tables."""

from __future__ import annotations

from collections.abc import Callable

from torqueloop.cython_kernels.tick import monitors as kernel
from torqueloop.hil.monitors.catalogue import GEAR_S, ONLINE, PERIOD_S, SETTLE_S
from torqueloop.hil.results.monitors import MonitorSpec

#: of the engine's limit: so fast in N, it may keep a control unit from engaging a gear
RACES = 0.3
#: own signals of the monitors, in the order of their slots; what only they read begins with STATE
STATE = "monitor.state."
OWN = ("monitor.gear", *(STATE + name for name in kernel.SIGNALS[1:]))


def own_signals() -> list[str]:
    """Names of all signals the monitors have in a signal table, in their order."""
    return [*OWN, *(name for m in ONLINE for name in (m.signal, f"{STATE}{m.name}_since"))]


def read_signals(spec: MonitorSpec) -> list[str]:
    """What the monitors of the tick read; empty: there is no gearbox to look at."""
    if not spec.gearbox.gears or not {"w_in", "w_out"} <= spec.signals.keys():
        return []
    capacities = [f"{e.name}.capacity" for e in spec.gearbox.elements]
    speeds = [name for p in spec.pairs for name in (p.reported, p.source)]
    return list(dict.fromkeys([*spec.signals.values(), *capacities, *speeds]))


def make_monitors(spec: MonitorSpec, slot: Callable[[str], int], n_sig: int, first_slot: int,
                  tick_s: float) -> kernel.Monitors:  # fmt: skip
    """The kernel on a signal table. slot: of a signal by its name; first_slot: of own_signals()."""
    box = spec.gearbox
    bit = {e.name: 1 << k for k, e in enumerate(box.elements)}
    gears = [(g.number, g.ratio, sum(bit[e] for e in g.elements)) for g in box.gears]
    rows = [(m.name, spec.limits.get(m.name, m.limit), round(m.hold_s / tick_s)) for m in ONLINE]
    made = kernel.Monitors(
        n_sig, first_slot, tick_s, round(PERIOD_S / tick_s), {fact: slot(name) for fact, name in spec.signals.items()},
        [(slot(f"{e.name}.capacity"), e.closed_Nm) for e in box.elements], gears, rows,
    )  # fmt: skip
    made.set_closed(box.closed_as, box.overruns)
    races = min(RACES * box.engine_max_radps, spec.engine_above_radps or box.engine_max_radps)
    cut = max(box.engine_max_radps, box.engine_cut_radps)
    made.set_car(box.mass_kg, box.idle_radps, box.engine_max_radps, cut, races, GEAR_S, SETTLE_S)
    pairs = [(slot(p.reported), slot(p.source), p.low, p.high) for p in spec.pairs]
    made.set_unit(spec.reported, spec.asked, pairs, spec.answer_s)
    return made
