"""Monitors of the recording that look at the elements of the gearbox.

LININGS    friction work of an element over its lining, its power, and the temperature of the steel plates that take it
overload   what a gear needs of an element, beyond what the highest pressure gives
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from torqueloop.core.describe.classes import dataclass
from torqueloop.hil.report.analysis import Array
from torqueloop.hil.report.drive import Drive, Seen
from torqueloop.hil.results.monitors import MonitorSpec

#: a gear is engaged this long after the lever was moved [s]
LEVER_S = 3.0
#: windows of the friction work of one shift, and of a minute [s]
SHIFT_S, MINUTE_S = 2.0, 60.0
#: window of the friction power: linings are a thermal mass of about this time [s]
POWER_S = 0.1
#: steel: heat capacity 7850 kg/m3 x 490 J/kg/K [J/mm3/K], conductivity [W/mm/K] (unalloyed, range 0.042 to 0.05)
STEEL_JPMM3K, STEEL_WPMMK = 3.85e-3, 0.045
#: the oil cools the plates with this time constant (assumed, 10 to 30) [s]; temperature of the oil, warm [degC]
COOLING_S, OIL_DEGC = 20.0, 80.0


@dataclass(frozen=True)
class Lining:
    """Something that linings bear up to a limit."""

    #: of an element over the recording, from its friction work [J/mm2] and the thickness of its steel plates [mm]
    course: Callable[[Array, Array, float], Array]
    #: unit of its short text and how many digits it has there
    unit: str
    digits: int
    #: the sentence it fails with
    text: str

    def judge(self, spec: MonitorSpec, drive: Drive, limit: float) -> Seen | None:
        """The element with the largest value, and when it first came beyond the limit."""
        found: list[tuple[float, float, str]] = []
        # a gear that the driver engages at full throttle is his
        rests = drive.lever_at_rest(LEVER_S + SHIFT_S)
        for element in spec.gearbox.elements:
            heat = drive.column(f"{element.name}.heat")
            if heat is None or not element.area_mm2 or len(heat) < 2:
                continue
            work = np.diff(heat, prepend=heat[0]) / element.area_mm2 * rests
            values = self.course(drive.t, work, element.plate_mm)
            k = int(np.argmax(values))
            over = np.flatnonzero(values > limit)
            found.append((float(values[k]), float(drive.t[over[0] if len(over) else k]), element.name))
        if not found:
            return None
        worst, at, name = max(found)
        short = f"{name}: {worst:.{self.digits}f} {self.unit}"
        if worst <= limit:
            return Seen(False, short, worst=worst)
        return Seen(True, self.text.format(name=name, worst=worst, at=at, limit=limit), at, worst)


def work_within(window_s: float) -> Callable[[Array, Array, float], Array]:
    """Friction work of the window before each sample [J/mm2]."""

    def course(t: Array, work: Array, plate_mm: float) -> Array:
        total = np.cumsum(work)
        return np.asarray(total - np.interp(t - window_s, t, total))

    return course


def power(t: Array, work: Array, plate_mm: float) -> Array:
    """Mean of the friction power over POWER_S [W/mm2]."""
    return work_within(POWER_S)(t, work, plate_mm) / POWER_S


def surface(t: Array, work: Array, plate_mm: float) -> Array:
    """Temperature of the steel plates at their surface [degC]. The lining insulates: all heat goes into the plates,
    which have a lining on either side.

    c s dT/dt = q - c s (T - T_oil) / tau        mean over half a plate, of thickness s
    T_surface = T + q s / (3 k)                  constant flux, no heat through its middle (Carslaw, Jaeger, 3.8)
    """
    half_mm = plate_mm / 2.0
    passed = np.diff(t, prepend=t[0])
    mean = OIL_DEGC + _decaying(work, passed) / (STEEL_JPMM3K * half_mm)
    return np.asarray(mean + power(t, work, plate_mm) * half_mm / (3.0 * STEEL_WPMMK))


#: what an element does that its lining does not bear
_TAKES = "{{name}} takes {{worst:.1f}} {unit} of {what} {window:g} s at {{at:.2f}} s; its lining bears {{limit:g}}."
_WORK, _POWER = ("J/mm²", "friction work within"), ("W/mm²", "friction power for")
_HOT = "The plates of {name} are hotter than {limit:g} °C at {at:.2f} s and come to {worst:.0f} °C."


def _takes(what: tuple[str, str], window_s: float) -> str:
    return _TAKES.format(unit=what[0], what=what[1], window=window_s)


#: what linings bear, by the name of its monitor; limits and their sources: hil/monitors/catalogue.py
LININGS = {
    "heat": Lining(work_within(SHIFT_S), "J/mm²", 2, _takes(_WORK, SHIFT_S)),
    "heat_minute": Lining(work_within(MINUTE_S), "J/mm²", 2, _takes(_WORK, MINUTE_S)),
    "heat_power": Lining(power, "W/mm²", 2, _takes(_POWER, POWER_S)),
    "temperature": Lining(surface, "°C", 0, _HOT),
}


def _decaying(added: Array, passed: Array) -> Array:
    """x' = -x / COOLING_S with `added` at each sample, `passed` seconds behind the one before."""
    left, x = np.exp(-passed / COOLING_S), 0.0
    return np.array([x := x * k + a for k, a in zip(left.tolist(), added.tolist(), strict=True)])


def overload(spec: MonitorSpec, drive: Drive, limit: float) -> Seen | None:
    """No gear needs more torque of an element than that holds at its highest pressure, by the statics of the gear."""
    box = spec.gearbox
    tau, lockup = (drive.column(spec.signals.get(fact, "")) for fact in ("tau_in", "tau_lockup"))
    capacities = [drive.column(f"{e.name}.capacity") for e in box.elements]
    if tau is None or any(c is None for c in capacities) or len(tau) < 2 or not any(g.torque for g in box.gears):
        return None
    turbine = np.abs(tau - (0.0 if lockup is None else lockup))
    n = max(1, round(POWER_S / (drive.t[1] - drive.t[0])))
    turbine = np.convolve(turbine, np.full(n, 1.0 / n), "same")
    closed = np.zeros(len(tau), int)
    for k, (element, capacity) in enumerate(zip(box.elements, capacities, strict=True)):
        assert capacity is not None
        closed |= (capacity > element.closed_Nm).astype(int) << k
    closed_as = np.asarray(box.closed_as)[closed]
    found: list[tuple[float, float, float, str, str]] = []
    for k, gear in enumerate(box.gears):
        # behind the driver's lever the turbine also carries what is left of the engine's higher speed in neutral
        inside = np.flatnonzero((closed_as == k) & drive.lever_at_rest(LEVER_S))
        for element in box.elements:
            if not len(inside) or not element.full_Nm or element.name not in gear.torque:
                continue
            needed = gear.torque[element.name] * turbine[inside]
            over = np.flatnonzero(needed > limit * element.full_Nm)
            at = inside[over[0]] if len(over) else inside[0]
            found.append((float(needed.max() / element.full_Nm), float(drive.t[at]), float(needed.max()), element.name,
                          gear.name))  # fmt: skip
    if not found:
        return None
    worst, at_s, torque, name, gear_name = max(found)
    if worst <= limit:
        return Seen(False, f"{name} in gear {gear_name}: {worst:.2f}", worst=worst)
    full = torque / worst
    text = (f"{name} must carry {torque:.0f} Nm in gear {gear_name}, from {at_s:.2f} s on; at its highest pressure it "
            f"holds {full:.0f} Nm.")  # fmt: skip
    return Seen(True, text, at_s, worst)
