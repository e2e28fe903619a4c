"""What a model is made of, described once: a record for every kind of element (matrices and sizes: model_sizes.py).

From these descriptions come the NumPy dtypes (here), the C structs and `tl_model` (records.pxi), their binding
(records_bind.pxi), the sizes the step is written in (step/sizes.pxi) and a page (docs/kernel_records.md); see
core/compile/record_sources.py. A new law takes a `Record` here and its force in the step, nothing else in this room.

A record has *given* fields, which the compiler fills (model_arrays.py), and *derived* ones, which depend on the step or
save work in it (derive.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from torqueloop.cython_kernels.model.choices import (
    ACTUATORS,
    ARGUMENTS,
    CONTACTS,
    FIXED,
    HEATS,
    LOOK_UPS,
    LOSS_FORMS,
    MOTIONS,
    OUTPUTS,
    RATIOS,
    SOURCES,
    WAYS,
    Choices,
)  # fmt: skip


@dataclass(frozen=True)
class Field:
    """One number (or a few) of an element."""

    name: str
    #: "i4" or "f8"
    type: str
    #: unit of the quantity; "" for numbers, "row" for what follows the row of the element (N.m or N, rad or m)
    unit: str
    meaning: str
    count: int = 1
    #: filled by derive.py, not by the compiler
    derived: bool = False
    #: what an index points into (see references.py), what a number stands for, or the number of choices
    into: str | int | Choices | None = None
    #: -1 stands for none
    optional: bool = False
    #: an input that acts on forces at once: a jump of it restarts the acceleration
    direct: bool = False


@dataclass(frozen=True)
class Record:
    """One kind of element."""

    #: name in C: m.<kind>[i].<field>
    kind: str
    #: name of their number in C
    count: str
    title: str
    law: str
    fields: tuple[Field, ...]

    @property
    def given(self) -> np.dtype[np.void]:
        """Of what the compiler fills, without gaps."""
        return np.dtype([_dtype(f) for f in self.fields if not f.derived])

    @property
    def dtype(self) -> np.dtype[np.void]:
        """Of the C struct."""
        return np.dtype([_dtype(f) for f in self.fields], align=True)


def _dtype(f: Field) -> tuple[str, str] | tuple[str, str, tuple[int]]:
    return (f.name, f.type) if f.count == 1 else (f.name, f.type, (f.count,))


def _i(name: str, meaning: str, into: str | int | Choices | None = None, **more: Any) -> Field:
    if isinstance(into, Choices):
        meaning = f"{meaning}: {into.text}"
    return Field(name, "i4", "", meaning, into=into, **more)


def _f(name: str, unit: str, meaning: str, **more: Any) -> Field:
    return Field(name, "f8", unit, meaning, **more)


_ROW = _i("row", "row it acts along", "hot row")

RECORDS = (
    Record(
        "fr", "nf", "friction elements",
        "|tau| <= capacity; sliding against the slip: cgeo*mu(|w|)*fn, stuck: up to peak*cgeo*mu(0)*fn",
        (
            _ROW,
            _i("src", "where the capacity comes from", SOURCES),
            _i("src_idx", "that input or actuator"),
            _i("mu", "curve mu(|w|)", "curve", optional=True),
            _i("fwd", "what it does while w > 0", WAYS),
            _i("bwd", "what it does while w < 0", WAYS),
            _i("fixed", "whether its capacity changes as speeds, pressures, inputs say", FIXED, derived=True),
            _i("both", "1: acts alike both ways", derived=True),
            _i("serial", "1: in series with springs and dampers, without inertia between", derived=True),
            _f("gain", "N", "normal force, or what the input or the piston force is multiplied with"),
            _f("cgeo", "m", "geometry factor"),
            _f("peak", "1", "static over sliding capacity at standstill"),
            _f("hold", "row", "limit against forward motion without a normal force"),
            _f("cap0", "m", "cgeo*mu(0)", derived=True),
            _f("lim", "m", "peak*cgeo*mu(0)", derived=True),
            _f("stiff", "s/m", "h/2 * compliance / STIFF: times d(capacity)/d|w| > 1 calls for the implicit torque",
               derived=True),
            _f("dmu", "s", "steepest rise of mu(|w|)", derived=True),
            _f("w_steep", "row", "slip above which mu rises with less than a tenth of that", derived=True),
            _f("ga", "m2", "gain times piston area of its actuator", derived=True),
            _f("pret", "Pa", "return pressure of its actuator", derived=True),
            _f("fixed_val", "row", "normal force, sliding capacity and limit (forward, backward) that never change: "
               "raw, cap_f, cap_b, lim_f, lim_b", count=5, derived=True),
        ),
    ),
    Record(
        "lin", "nlin", "springs and dampers", "-(c*(phi - phi0) + d*w)",
        (
            _ROW,
            _f("c", "N.m/rad", "stiffness"),
            _f("d", "N.m.s/rad", "damping"),
            _f("phi0", "rad", "angle without force"),
        ),
    ),
    Record(
        "tq", "ntq", "sources of torque", "constant + gain*input",
        (
            _ROW,
            _i("input", "input", "input", optional=True, direct=True),
            _f("gain", "row", "torque per unit of the input"),
            _f("constant", "row", "torque without it"),
        ),
    ),
    Record(
        "poly", "npoly", "resistances", "k0 + k1*w + k2*w^2 + k3*w*|w|",
        (
            _ROW,
            _f("k", "row", "k0 .. k3, per power of rad/s or m/s", count=4),
            _f("steep", "row", "speed beyond which its torque falls so steeply that it is found with the accelerations",
               derived=True),
        ),
    ),
    Record(
        "eng", "neng", "engines", "drag(w) + pedal*(wot(w) - drag(w)), or map(w, pedal); and the idle controller",
        (
            _ROW,
            _i("pedal", "input with the pedal, 0..1", "input", direct=True),
            _i("wot", "curve at full pedal", "curve", optional=True),
            _i("drag", "curve without pedal", "curve", optional=True),
            _i("map", "map over speed and pedal", "map", optional=True),
            _f("w_idle", "rad/s", "idle speed"),
            _f("kp", "N.m.s/rad", "proportional gain of the idle controller"),
            _f("ki", "N.m/rad", "its integral gain"),
            _f("tau_idle_max", "N.m", "its largest torque"),
            _f("steep_lo", "rad/s", "from this speed to the next its torque falls so steeply that it is found "
               "with the accelerations", derived=True),
            _f("steep_hi", "rad/s", "the upper one", derived=True),
        ),
    ),
    Record(
        "tc", "ntc", "torque converters",
        "nu = w_t/w_p; pump -mp(nu)*w_p*|w_p|, turbine mu(nu) times it; overrun: coast",
        (
            _i("row_p", "row of the pump", "hot row"),
            _i("row_t", "row of the turbine", "hot row"),
            _i("mp", "curve mp(nu)", "curve"),
            _i("mu", "curve mu(nu)", "curve"),
            _i("coast", "curve of the overrun over w_p/w_t", "curve"),
            _f("coast_ratio", "1", "pump over turbine torque in the overrun"),
            _f("steep", "rad/s", "speed of the pump beyond which the torques fall so steeply that they are found "
               "with the accelerations", derived=True),
            _f("steep_over", "rad/s", "the same of the turbine in the overrun", derived=True),
        ),
    ),
    Record(
        "act", "nact", "pressure actuators", "first order: p' = (p_cmd - p)/tau; with fill time: see pressures.pxi",
        (
            _i("input", "input with the commanded pressure", "input"),
            _i("kind", "how the pressure follows", ACTUATORS),
            _f("area", "m2", "area of the piston"),
            _f("p_return", "Pa", "pressure its spring takes"),
            _f("tau_rise", "s", "time constant of rising pressure"),
            _f("tau_fall", "s", "of falling pressure"),
            _f("t_fill", "s", "time to fill the piston"),
            _f("t_empty", "s", "time to empty it"),
            _f("p_max", "Pa", "supply pressure"),
            _f("p0", "Pa", "pressure at the start"),
            _f("E", "1", "exp(-h/tau): rise whole step, rise half step, fall whole, fall half", count=4, derived=True),
        ),
    ),
    Record(
        "ls", "nls", "losses of gears", "w > 0: max(kA*r + cA, kB*r + cB), w < 0: min(kA*r - cA, kB*r - cB); against w",
        (
            _i("fr", "friction element that carries it", "fr"),
            _i("re", "reaction r it depends on", "reaction"),
            _i("form", "what its curves are", LOSS_FORMS),
            _i("tab", "its four curves", "curve", count=4),
            _i("input", "input they are over instead of |w|", "input", optional=True, direct=True),
        ),
    ),
    Record(
        "con", "ncon", "contacts with play",
        "x > hi: tc = c*(x - hi)^n, td = d*w, force -(tc + min(tc, td)) or 0 if tc + td <= 0; kind 1: -(tc + td)",
        (
            _ROW,
            _i("kind", "law", CONTACTS),
            _f("c", "N.m/rad", "stiffness"),
            _f("d", "N.m.s/rad", "damping"),
            _f("lo", "rad", "lower end of the play"),
            _f("hi", "rad", "upper end of the play"),
            _f("n", "1", "exponent, >= 1"),
        ),
    ),
    Record(
        "st", "nst", "hard stops and dog clutches",
        "lo <= x <= hi along the row of friction element fr; at an end w = 0 (plastic impact), the force pushes back. "
        "With an input: teeth",
        (
            _i("fr", "friction element that holds at an end", "fr"),
            _i("input", "input that asks for teeth (-1: a stop)", "input", optional=True, direct=True),
            _f("lo", "rad", "lower end of the range"),
            _f("hi", "rad", "upper end of the range"),
            _f("sync", "row", "speed up to which teeth engage"),
            _f("release", "row", "torque up to which teeth disengage"),
        ),
    ),
    Record(
        "drv", "nd", "driven flanges", "motion of the row of friction element fr as the inputs say, see driven.pxi",
        (
            _i("fr", "bilateral friction element", "fr"),
            _i("kind", "what is given", MOTIONS),
            _i("inputs", "reference and its derivatives", "input", count=3, optional=True, direct=True),
            _f("p", "rad/s", "corner frequency; not used", count=2),
        ),
    ),
    Record(
        "vg", "nvg", "gears of changing ratio", "w_a = i*w_b, held by friction element fr",
        (
            _i("fr", "bilateral friction element", "fr"),
            _i("row_a", "row of w_a", "hot row"),
            _i("row_b", "row of w_b", "hot row"),
            _i("kind", "i", RATIOS),
            _i("input", "input", "input", optional=True, direct=True),
            _i("tab", "curve", "curve", optional=True),
        ),
    ),
    Record(
        "ed", "ned", "eddy-current brakes", "-2*tau*x/(1 + x^2), x = w/(wn*(1 + alpha*(T - T_ref)))",
        (
            _ROW,
            _i("th", "thermal node with its temperature; none: T", "node", optional=True),
            _f("tau", "N.m", "largest torque"),
            _f("wn", "rad/s", "speed of the largest torque"),
            _f("alpha", "1/K", "temperature coefficient"),
            _f("T_ref", "K", "temperature of wn"),
            _f("T", "K", "temperature without a node"),
        ),
    ),
    Record(
        "cv", "ncv", "forces by curve or map", "gain*tab1(w), or gain*tab2(w, argument)",
        (
            _ROW,
            _i("tab1", "curve", "curve", optional=True),
            _i("tab2", "map", "map", optional=True),
            _i("arg", "second argument of the map", ARGUMENTS),
            _i("arg_idx", "that input or thermal node"),
            _i("absolute", "1: over |w| and with the sign of w", 2),
            _f("gain", "row", "factor"),
            _f("steep_lo", "row", "from this speed to the next its torque falls so steeply that it is found "
               "with the accelerations", derived=True),
            _f("steep_hi", "row", "the upper one", derived=True),
        ),
    ),
    Record(
        "wd", "nwd", "drags of open wet clutches",
        "-f*m*d*w up to |w| = sqrt(m)*wc, then f*m*d*sqrt(m)*wc*((1 - b)*x + b*x^3), x = sqrt(m)*wc/|w|; "
        "m = exp(-beta*(T - T_ref))",
        (
            _ROW,
            _i("th", "thermal node with its temperature; none: T", "node", optional=True),
            _i("input", "input f that scales it; none: 1", "input", optional=True, direct=True),
            _f("d", "N.m.s/rad", "torque over slip while the film is whole, at T_ref"),
            _f("wc", "rad/s", "slip beyond which the film breaks off, at T_ref"),
            _f("b", "1", "share of the peak torque that falls with the third power"),
            _f("beta", "1/K", "decrease of the logarithm of the viscosity"),
            _f("T_ref", "K", "temperature of d and wc"),
            _f("T", "K", "temperature without a node"),
            _f("steep_lo", "rad/s", "from this speed to the next its torque falls so steeply that it is found "
               "with the accelerations", derived=True),
            _f("steep_hi", "rad/s", "the upper one", derived=True),
        ),
    ),
    Record(
        "lu", "nlu", "look-ups of tables over a speed, at order 4",
        "a trial follows one piece of these tables, see look_ups.pxi",
        tuple(replace(f, derived=True) for f in (
            _i("of", "what it belongs to", LOOK_UPS),
            _i("i", "that element"),
            _ROW,
            _i("over", "row of the speed that the one of `row` is divided by", "hot row", optional=True),
            _i("slot", "place of its first hint in tl_state.hint"),
            _i("tables", "how many hints"),
            _i("n", "number of breakpoints"),
            _i("first", "the first of them in lu_x"),
            _i("hints", "the first hint of its pieces, one more than breakpoints, in lu_hint"),
        )),
    ),
    Record(
        "bo", "nbo", "rigid bodies with rotors",
        "torque -omega x H, H = I*omega + sum J*n*w; force -m*omega x v + m*g; along the axes of the body",
        (
            *(_i(f"w{axis}", f"row of the angular velocity about {axis} of the body", "hot row") for axis in "xyz"),
            *(_i(f"v{axis}", f"row of the velocity of the mass centre along {axis}", "hot row") for axis in "xyz"),
            *(_i(f"h{axis}", f"row of H along {axis}", "hot row") for axis in "xyz"),
            _i("tau", "inputs: torques about the three axes it is hinged by in turn, x, y, z", "input", count=3,
               optional=True, direct=True),
            _f("m", "kg", "mass"),
            _f("g", "m/s2", "gravity along the axes of the world", count=3),
            _f("q", "1", "start: quaternion from the axes of the body to those of the world", count=4),
            _f("r", "m", "start: place of the mass centre", count=3),
        ),
    ),
    Record(
        "jo", "njo", "joint shafts",
        "D = phi_a + r(phi_a + theta_a) - phi_b - r(phi_b + theta_b) - D0, r of a universal joint: model/joints.pxd; "
        "tau = c*D + d*D'; -tau*dD/dphi_a on a, -tau*dD/dphi_b on b, beside the spring c, d along phi_a - phi_b",
        (
            _i("row", "row of phi_a - phi_b", "hot row"),
            _i("row_a", "row of flange a", "hot row"),
            _i("row_b", "row of flange b", "hot row"),
            _i("lin", "that spring and damper", "lin"),
            _i("hooke", "per end: 1 a universal joint, 0 one of constant velocity", 2, count=2),
            _i("bend_in", "per end: input with the bend angle", "input", count=2, optional=True, direct=True),
            _i("pose", "where its bearings are on carriers that move against each other", "pose", optional=True),
            _f("bend", "rad", "per end: bend angle without input", count=2),
            _f("theta", "rad", "per end: angle of the outer fork from the plane of both shafts at phi = 0", count=2),
            _f("D0", "rad", "twist without force"),
            _f("planes", "rad", "angle between the planes of the joints, about the shaft"),
            _f("length", "m", "distance of the joints; 0: not known"),
            _f("c", "N.m/rad", "stiffness"),
            _f("d", "N.m.s/rad", "damping"),
        ),
    ),
    Record(
        "wr", "nwr", "forces of joint shafts on rigid bodies",
        "-tau times the derivative of the twist, six for each end on a body: about its axes, then along them",
        (_ROW,),
    ),
    Record(
        "ps", "nps", "joint shafts between bearings on carriers that move against each other",
        "bends, planes and zero references from the poses of both carriers, inputs or states: model/poses.pxd",
        (
            _i("pose_in", "carrier of a, of b: inputs with its quaternion (to the axes of the world, scalar first) and "
               "place; none: at rest in the world", "input", count=14, optional=True, direct=True),
            _i("body", "carrier of a, of b: a rigid body of the model", "body", count=2, optional=True),
            _i("force", "per end: first of its six forces on that body", "wr", count=2, optional=True),
            _f("n", "1", "bearing of a, of b: its axis, along the axes of its carrier", count=6),
            _f("e1", "1", "pin of its fork at phi = 0, square to it", count=6),
            _f("r", "m", "place of its joint", count=6),
            _f("sense", "1", "direction of the shaft along the way from joint a to b: 1 or -1; 0: one joint, along b"),
            _f("psi0", "rad", "angle of the zero references against each other without force"),
        ),
    ),
    Record(
        "rx", "nrx", "coordinates without inertia that relax",
        "u_coord = angle of the row: dampers couple it with no other coordinate, forces along it are in balance",
        (
            _i("coord", "coordinate", "coordinate"),
            _i("row", "row over the angles that is its speed, rad/s per rad", "row"),
            _i("fr", "friction element behind it, in series with the springs and dampers", "fr", optional=True),
            _i("con", "contact behind it, in series with the springs and dampers", "con", optional=True),
            _i("elastic", "1: no damper acts along it, friction alone says its angle", 2),
            _i("resolved", "1: the step resolves how fast", derived=True),
            _f("share", "1", "its share in the slip of the friction element, or the way of the contact"),
            _f("gain", "row", "its speed per torque of the friction element or contact; elastic: its angle"),
        ),
    ),
    Record(
        "th", "nth", "thermal nodes", "C*T' = sum of the heat flows into it; C = 0: a temperature that is given",
        (
            _i("input", "input with the given temperature", "input", optional=True),
            _f("C", "J/K", "capacity"),
            _f("T0", "K", "start, or given, temperature"),
        ),
    ),
    Record(
        "thg", "nthg", "thermal conductances", "heat flow from a to b: G*factor*(T_a - T_b)",
        (
            _i("a", "node", "node"),
            _i("b", "node", "node"),
            _i("tab", "curve over a temperature: a factor (thermostat)", "curve", optional=True),
            _i("arg", "node with that temperature", "node", optional=True),
            _i("input", "input that is a factor", "input", optional=True),
            _f("G", "W/K", "conductance"),
        ),
    ),
    Record(
        "ths", "nths", "sources of heat", "gain*power of an element, or an input in W, into a node",
        (
            _i("kind", "where it comes from", HEATS),
            _i("idx", "that port, friction element, damper, contact or input"),
            _i("node", "node it heats", "node"),
            _f("gain", "1", "share of the power"),
        ),
    ),
    Record(
        "te", "nte", "terms of outputs that are sums",
        "gain*reaction*speed*input*output of a joint shaft, each where there is one",
        (
            _i("reaction", "reaction", "reaction", optional=True),
            _i("row", "row of the speed", "row", optional=True),
            _i("input", "input", "input", optional=True),
            _i("joint", "joint shaft: which of its outputs (vocabulary.JOINT_OUTPUTS each)", optional=True),
            _i("more", "1: the sum goes on with the next term", 2),
            _f("gain", "", "factor"),
        ),
    ),
    Record(
        "out", "nout", "outputs", "gain times a quantity of the state, see kernel_outputs.pxi",
        (
            _i("kind", "which quantity (OUTPUTS in model/choices.py)", len(OUTPUTS.of)),
            _i("idx", "row or element it belongs to"),
            _i("aux", "row of the speed in OUT_REACTION_POWER", "row"),
            _f("gain", "", "factor"),
        ),
    ),
)  # fmt: skip

#: kinds whose number is no part of a structure: what is read from a state, and look-ups, which follow from values
READ_ONLY = frozenset({"te", "out", "lu"})
KINDS = {record.kind: record for record in RECORDS}
#: groups of ports (forces along a row that depend on speeds, inputs, temperatures), in the order of their numbers
PORTS = (("tq", "row"), ("poly", "row"), ("eng", "row"), ("tc", "row_p"), ("tc", "row_t"), ("ed", "row"), ("cv", "row"),
         ("wd", "row"), ("bo", "wx"), ("bo", "wy"), ("bo", "wz"), ("bo", "vx"), ("bo", "vy"), ("bo", "vz"),
         ("wr", "row"), ("jo", "row_a"), ("jo", "row_b"))  # fmt: skip
