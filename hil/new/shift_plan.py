"""Which shifts a gearbox has, from its statics: gears of a control unit, elements on and off, kind of each shift."""

from __future__ import annotations

from torqueloop.core.analyse.gear_statics import GearState
from torqueloop.core.analyse.gearbox_report import GearboxReport
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.ecu.gears import gear_number, is_variant, neighbours

BRAKING = "_engine_braking"
FREE_WHEEL = "FreeWheel"


@dataclass(frozen=True)
class TcuGear:
    """A gear as the control unit sees it: only elements with a pressure."""

    name: str
    elements: tuple[str, ...]
    ratio: float
    #: |torque| per Nm of the turbine of each element that carries some
    torque: dict[str, float]
    free_wheels: tuple[str, ...] = ()


@dataclass(frozen=True)
class PlannedShift:
    """One shift: which profile, which elements, through which gear."""

    name: str
    profile: str
    on: tuple[str, ...]
    off: tuple[str, ...]
    via: str | None = None
    note: str = ""


def pressed_elements(report: GearboxReport) -> list[str]:
    """Elements with a pressure, in the order of the file."""
    return [e.name for e in report.train.elements if e.kind != FREE_WHEEL]


def engaged_elements(report: GearboxReport) -> list[str]:
    """Those of them that some gear needs (not the lock-up clutch of a car)."""
    used = {e for state in report.gears.values() for e in state.engaged}
    return [e for e in pressed_elements(report) if e in used]


def tcu_gears(report: GearboxReport) -> dict[str, TcuGear]:
    """P, R, N and the forward gears; "1_engine_braking" becomes "1E"."""
    free = {e.name for e in report.train.elements if e.kind == FREE_WHEEL}
    found = {}
    for name, state in report.gears.items():
        short = f"{name.removesuffix(BRAKING)}E" if name.endswith(BRAKING) else name
        if short == "R" or gear_number(short):
            found[short] = _gear(short, state, free)
    for name in ("R", "1"):
        if name not in found:
            raise ConfigError(f"the gearbox {report.name} describes no gear {name}", table="gears", key=name)
    common = tuple(e for e in found["1"].elements if e in found["R"].elements)
    neutral = TcuGear("N", common, 0.0, {})
    order = ["R", *sorted((g for g in found if g != "R"), key=lambda g: (gear_number(g), is_variant(g)))]
    return {"P": TcuGear("P", common, 0.0, {}), "N": neutral, **{name: found[name] for name in order}}


def _gear(name: str, state: GearState, free: set[str]) -> TcuGear:
    pressed = tuple(e for e in state.engaged if e not in free)
    torque = {e: abs(float(state.torques[e])) for e in pressed if state.torques[e] != 0}
    return TcuGear(name, pressed, float(state.ratio or 0), torque, tuple(e for e in state.engaged if e in free))


def shift_plan(gears: dict[str, TcuGear]) -> list[PlannedShift]:
    """All shifts a control unit needs, and those down by several gears."""
    plan: list[PlannedShift] = []
    pairs = neighbours(gears)
    for low, high in pairs:
        plan += [_up(gears, low, high), _up(gears, low, high, ".coast")]
    for low, high in reversed(pairs):
        plan += [_down(gears, high, low), _down(gears, high, low, ".coast")]
    top = len(pairs) + 1
    for number in range(top, 2, -1):
        for lower in range(number - 2, 0, -1):
            plan += _skip(gears, str(number), str(lower))
    plan += _variants(gears)
    forward = [g for g in gears if gear_number(g)]
    for gear in ("R", *(g for g in forward if not is_variant(g))):
        plan.append(_make(gears, "N", gear, "engage"))
    for gear in ("R", *forward):
        plan.append(_make(gears, gear, "N", "release"))
    return plan


def _change(gears: dict[str, TcuGear], a: str, b: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    old, new = gears[a].elements, gears[b].elements
    return tuple(e for e in new if e not in old), tuple(e for e in old if e not in new)


def _make(gears: dict[str, TcuGear], a: str, b: str, profile: str, ending: str = "", note: str = "") -> PlannedShift:
    return PlannedShift(f"{a}-{b}{ending}", profile, *_change(gears, a, b), note=note)


def _up(gears: dict[str, TcuGear], low: str, high: str, ending: str = "") -> PlannedShift:
    on, off = _change(gears, low, high)
    lost = [f for f in gears[low].free_wheels if f not in gears[high].free_wheels]
    note = f"{', '.join(lost)} overruns" if lost else ""
    if not off and ending:
        note = "nothing to release"
    return _make(gears, low, high, "up_coast" if ending else "up", ending, note)


def _down(gears: dict[str, TcuGear], high: str, low: str, ending: str = "") -> PlannedShift:
    on, _ = _change(gears, high, low)
    caught = [f for f in gears[low].free_wheels if f not in gears[high].free_wheels]
    note = f"{', '.join(caught)} catches" if caught else ""
    if ending:
        # without an oncoming element nothing can pull the turbine up; the free wheel waits for the engine
        return _make(gears, high, low, "down_coast" if on else "release", ending, note)
    return _make(gears, high, low, "down", ending, note)


def _skip(gears: dict[str, TcuGear], high: str, low: str) -> list[PlannedShift]:
    on, off = _change(gears, high, low)
    if len(on) <= 1 and len(off) <= 1:
        return [_down(gears, high, low), _down(gears, high, low, ".coast")]
    # more than one exchange: through the gear between that makes two single ones of it
    for middle in range(int(high) - 1, int(low), -1):
        via = str(middle)
        parts = (_change(gears, high, via), _change(gears, via, low))
        if all(len(a) <= 1 and len(b) <= 1 for a, b in parts):
            note = f"two exchanges: {high}-{via}, {via}-{low}"
            return [PlannedShift(f"{high}-{low}{e}", "", on, off, via, note) for e in ("", ".coast")]
    return []


def _variants(gears: dict[str, TcuGear]) -> list[PlannedShift]:
    plan = []
    for gear in (g for g in gears if is_variant(g)):
        plain, higher = gear.removesuffix("E"), str(gear_number(gear) + 1)
        plan += [_make(gears, plain, gear, "join"), _make(gears, gear, plain, "release")]
        if higher in gears:
            plan.append(_make(gears, gear, higher, "up"))
            plan += [_make(gears, higher, gear, "down"), _make(gears, higher, gear, "down_coast", ".coast")]
    return plan
