"""Monitors of the recording that look at the elements of the gearbox.

heat, heat_minute, heat_power   friction work of an element over its lining, in a moving window
temperature                     of its steel plates, which take that work and are cooled by the oil
overload                        what a gear needs of an element, beyond what the highest pressure gives
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from torqueloop.hil.report.analysis import Array
from torqueloop.hil.report.drive import Drive, Seen
from torqueloop.hil.results.monitors import MonitorSpec

#: a gear is engaged this long after the lever was moved [s]
LEVER_S = 3.0
#: window of the friction work of one shift [s]
SHIFT_S = 2.0
#: window of the friction power: linings are a thermal mass of about this time [s]
POWER_S, POWER = 0.1, "W/mm²"
#: half of a steel plate, which takes the heat of one face: 3 mm (RaybestosPowertrain Steel_Prints, ZF 6HP26) [mm]
HALF_PLATE_MM = 1.5
#: steel: heat capacity 7850 kg/m3 x 490 J/kg/K [J/mm3/K], conductivity [W/mm/K] (unalloyed, range 0.042 to 0.05)
STEEL_JPMM3K, STEEL_WPMMK = 3.85e-3, 0.045
#: the oil cools the plates with this time constant (assumed, 10 to 30) [s]; temperature of the oil, warm [degC]
COOLING_S, OIL_DEGC = 20.0, 80.0


def heat(window_s: float, unit: str = "J/mm²") -> Callable[[MonitorSpec, Drive, float], Seen | None]:
    """Friction work of an element within a moving window, or the mean of its power in it, over its lining."""

    def judge(spec: MonitorSpec, drive: Drive, limit: float) -> Seen | None:
        found: list[tuple[float, float, str]] = []
        for element in spec.gearbox.elements:
            heat = drive.column(f"{element.name}.heat")
            if heat is None or not element.area_mm2 or not len(heat):
                continue
            before = np.searchsorted(drive.t, drive.t - window_s, "right")
            work = (
                (heat - heat[np.minimum(before, len(heat) - 1)]) / element.area_mm2 / (window_s if unit == POWER else 1)
            )
            # a gear that the driver engages at full throttle is his
            work = np.where(drive.lever_at_rest(LEVER_S + SHIFT_S), work, 0.0)
            k = int(np.argmax(work))
            over = np.flatnonzero(work > limit)
            found.append((float(work[k]), float(drive.t[over[0] if len(over) else k]), element.name))
        if not found:
            return None
        worst, at, name = max(found)
        if worst <= limit:
            return Seen(False, f"{name}: {worst:.2f} {unit}", worst=worst)
        what = "friction power for" if unit == POWER else "friction work within"
        text = f"{name} takes {worst:.1f} {unit} of {what} {window_s:g} s at {at:.2f} s; its lining bears {limit:g}."
        return Seen(True, text, at, worst)

    return judge


def temperature(spec: MonitorSpec, drive: Drive, limit: float) -> Seen | None:
    """Surface of the steel plates of each element. The lining insulates: all heat goes into the plates.

    c s dT/dt = q - c s (T - T_oil) / tau        mean over half a plate of thickness s
    T_surface = T + q s / (3 k)                  constant flux, no heat through its middle (Carslaw, Jaeger, 3.8)
    """
    found: list[tuple[float, float, str]] = []
    for element in spec.gearbox.elements:
        heat = drive.column(f"{element.name}.heat")
        if heat is None or not element.area_mm2 or len(heat) < 2:
            continue
        # a gear that the driver engages at full throttle is his
        work = np.diff(heat, prepend=heat[0]) / element.area_mm2 * drive.lever_at_rest(LEVER_S + SHIFT_S)
        passed = np.diff(drive.t, prepend=drive.t[0])
        mean = OIL_DEGC + _decaying(work, passed) / (STEEL_JPMM3K * HALF_PLATE_MM)
        total = np.cumsum(work)
        power = (total - np.interp(drive.t - POWER_S, drive.t, total)) / POWER_S
        surface = mean + power * HALF_PLATE_MM / (3.0 * STEEL_WPMMK)
        k = int(np.argmax(surface))
        over = np.flatnonzero(surface > limit)
        found.append((float(surface[k]), float(drive.t[over[0] if len(over) else k]), element.name))
    if not found:
        return None
    worst, at, name = max(found)
    if worst <= limit:
        return Seen(False, f"{name}: {worst:.0f} °C", worst=worst)
    text = f"The plates of {name} are hotter than {limit:g} °C at {at:.2f} s and come to {worst:.0f} °C."
    return Seen(True, text, at, worst)


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
        inside = np.flatnonzero((closed_as == k) & drive.lever_at_rest(0.0))
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
