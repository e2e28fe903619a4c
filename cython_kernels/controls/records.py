"""What each controller is made of, described once: parameters, what it reads, what it commands, what it keeps.

From these descriptions come the C structs and the names of the numbers in C (records.pxi), the binding (laws.pyx)
and a section of a page (docs/kernel_records.md); see core/compile/record_sources.py. The laws stand in laws.pyx. The
classes of core/controls have the defaults and ranges of the parameters.
"""

from __future__ import annotations

from dataclasses import dataclass

from torqueloop.cython_kernels.model.records import Field, Record


@dataclass(frozen=True)
class Controller:
    """One kind of controller. Its numbers lie in a row: commands first, then what it keeps from call to call."""

    #: name in files, and of the law in C; `record` has its parameters, all doubles
    kind: str
    record: Record
    reads: tuple[Field, ...]
    commands: tuple[Field, ...]
    keeps: tuple[Field, ...]
    #: parameters that are curves, in the order of the law: name, meaning, whether there are several of them
    curves: tuple[tuple[str, str, bool], ...] = ()

    @property
    def own(self) -> tuple[Field, ...]:
        """Its numbers in their order."""
        return (*self.commands, *self.keeps)


def _f(name: str, unit: str, meaning: str) -> Field:
    return Field(name, "f8", unit, meaning)


def _record(kind: str, title: str, law: str, *fields: Field) -> Record:
    return Record(kind, f"n_{kind}", title, law, fields)


_V = _f("v", "m/s", "speed of the car")
_W = _f("w", "rad/s", "speed of the engine")
_ACCELERATOR = _f("accelerator", "1", "pedal, 0..1")
_COOLANT = _f("T_coolant", "K", "temperature of the coolant")

CONTROLLERS = (
    Controller(
        "cooling_fan",
        _record(
            "cooling_fan", "air through the radiator",
            "air = max(still + (|v|/v_ref)^0.8, fan on: fan_air), at most `most`; on above T_on, off below T_off",
            _f("v_ref", "m/s", "speed at which the wind alone gives air = 1 (+ still)"),
            _f("still", "1", "air of the standing car"),
            _f("fan_air", "1", "air with the fan on"),
            _f("most", "1", "largest air"),
            _f("T_on", "K", "the fan is switched on above"),
            _f("T_off", "K", "and off below; < T_on"),
        ),
        (_V, _COOLANT),
        (_f("air", "1", "factor of the radiator's conductance"), _f("fan", "1", "on: 1")),
        (),
    ),
    Controller(
        "driver",
        _record(
            "driver", "driver who follows a speed",
            "u = kp*e + x, e = v_set - v; dx/dt = ki*e + (pedals - u)/T_track; one foot, rates, rest",
            _f("kp", "s/m", "pedal per m/s"),
            _f("ki", "1/m", "pedal per m/s and s"),
            _f("T_track", "s", "time in which x follows pedals at their limits"),
            _f("press", "1/s", "fastest way down of a pedal"),
            _f("release", "1/s", "fastest way up"),
            _f("t_change", "s", "the foot from one pedal to the other"),
            _f("v_rest", "m/s", "with v_set and v below: at rest"),
            _f("brake_rest", "1", "brake pedal at rest"),
        ),
        (_f("v_set", "m/s", "wanted speed"), _V),
        (_ACCELERATOR, _f("brake", "1", "pedal, 0..1")),
        (
            _f("integral", "1", "integral part x"),
            _f("pedals", "1", "both pedals as one number: > 0 accelerator, < 0 brake"),
            _f("foot", "1", "the pedal the foot was on last: 1, -1; 0: none yet"),
            _f("off", "s", "how long it has been off it"),
        ),
    ),
    Controller(
        "fuel_flow",
        _record(
            "fuel_flow", "fuel demand of the engine",
            "demand -> accelerator + idle within 0..1 at rates rise, fall; 0 in overrun",
            _f("w_cut", "rad/s", "fuel is cut off in overrun above"),
            _f("w_resume", "rad/s", "and comes back below; < w_cut"),
            _f("released", "1", "the accelerator counts as released below"),
            _f("t_cut", "s", "released for so long before the fuel is cut off"),
            _f("rise", "1/s", "fastest rise of the demand"),
            _f("fall", "1/s", "fastest fall"),
        ),
        (_ACCELERATOR, _f("idle", "1", "demand of the idle controller"), _W),
        (_f("demand", "1", "for the engine, 0..1"), _f("fuel", "1", "cut off: 0, else 1")),
        (_f("released_for", "s", "how long the accelerator has been released"), _f("cut", "1", "cut off: 1")),
    ),
    Controller(
        "gearbox",
        _record(
            "gearbox", "choice of the gear and of the converter's lock-up",
            "gear + 1 above up[gear](throttle), gear - 1 below down[gear - 1](throttle), no sooner than t_dwell",
            _f("t_dwell", "s", "least time between two changes"),
            _f("t_shift", "s", "time of gear_actual for one gear"),
            _f("lockup_gear", "1", "lock-up from this gear on; 0: none"),
            _f("v_lockup", "m/s", "lock-up above"),
            _f("lockup_band", "m/s", "off below v_lockup - lockup_band"),
            _f("p_closed", "Pa", "pressure of the closed lock-up"),
        ),
        (_f("throttle", "1", "0..1"), _V),
        (
            _f("gear", "1", "gear chosen"),
            _f("gear_actual", "1", "follows it in t_shift per gear"),
            _f("lockup", "1", "closed: 1"),
            _f("p_lockup", "Pa", "pressure for its plate pack"),
        ),
        (_f("since", "s", "time since the last change"),),
        (("up", "speeds [m/s] over the throttle, one per gear but the last", True),
         ("down", "speeds back, below those of `up`", True)),
    ),
    Controller(
        "idle",
        _record(
            "idle", "idle speed of the engine",
            "demand = kp*e + x within 0..limit, e = w_idle(T_coolant) - w, dx/dt = ki*e; no windup",
            _f("kp", "s/rad", "demand per rad/s"),
            _f("ki", "1/rad", "demand per rad/s and s"),
            _f("limit", "1", "largest demand"),
            _f("released", "1", "x stands while the accelerator is above"),
        ),
        (_W, _ACCELERATOR, _COOLANT),
        (_f("demand", "1", "for the engine, 0..limit"), _f("w_idle", "rad/s", "speed it holds")),
        (_f("integral", "1", "integral part x"),),
        (("w_idle", "idle speed [rad/s] over the temperature of the coolant [K]", False),),
    ),
)  # fmt: skip

#: kind -> controller
KINDS = {c.kind: c for c in CONTROLLERS}
#: most signals that one reads
MOST_READS = max(len(c.reads) for c in CONTROLLERS)
