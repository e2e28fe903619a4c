"""What components contribute to a driveline, as plain records: joints, gear rows, inertias, force elements, names.

Speeds and angles are `Form`s (vocabulary.py). Heat elements are in heat_parts.py. The compiler turns all of this
into arrays; compiler.py and element_arrays.py give the equation of every element.
"""

from __future__ import annotations

from dataclasses import field
from fractions import Fraction

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.frame_parts import FrameParts, Term
from torqueloop.core.describe.heat_parts import ThermalParts
from torqueloop.core.describe.joint_parts import JointParts
from torqueloop.core.describe.tables import Table1D, Table2D
from torqueloop.core.describe.vocabulary import PORT_GROUPS, Form, InputSignal

#: the housing, at rest at 0
GROUND = "<housing>"


@dataclass(frozen=True)
class Join:
    """Two flanges that move together: phi(second) = phi(first) + offset."""

    owner: str
    first: str
    second: str
    offset: Fraction


@dataclass(frozen=True)
class Constraint:
    """An ideal gear: form.w = 0 and form.phi = phi."""

    owner: str
    form: Form
    phi: Fraction = Fraction(0)
    #: a shaft that it blocks is meant to stand still
    held: bool = False


@dataclass(frozen=True)
class InertiaPart:
    """Kinetic energy 1/2 J*w^2 of the speed of a form."""

    owner: str
    form: Form
    #: kg.m2 (rotational) or kg (translational)
    J: float


@dataclass(frozen=True)
class Compliance:
    """Force along the form: -(c*(phi - phi0) + d*w)."""

    owner: str
    form: Form
    c: float
    d: float
    phi0: float


@dataclass(frozen=True)
class TorqueSource:
    """Force along the form: const + gain*input."""

    owner: str
    form: Form
    input: int
    gain: float
    const: float


@dataclass(frozen=True)
class Polynomial:
    """Force along the form: k0 + k1*w + k2*w^2 + k3*w*|w|."""

    owner: str
    form: Form
    k: tuple[float, float, float, float]


@dataclass(frozen=True)
class EnginePart:
    """Combustion torque along the form from curves or a map, with an idle-speed controller."""

    owner: str
    form: Form
    pedal: int
    wot: Table1D | None
    drag: Table1D
    map: Table2D | None
    w_idle: float
    kp: float
    ki: float
    tau_idle_max: float


@dataclass(frozen=True)
class ConverterPart:
    """Hydrodynamic torques on pump and turbine."""

    owner: str
    pump: Form
    turbine: Form
    mp: Table1D
    mu: Table1D
    coast: Table1D
    coast_ratio: float


@dataclass(frozen=True)
class FrictionPart:
    """Dry friction along the form; see the array vocabulary in compiler.py."""

    owner: str
    form: Form
    source: int
    source_index: int
    gain: float
    cgeo: float
    mu: Table1D | None
    peak: float
    forward: int
    backward: int
    hold: float


@dataclass(frozen=True)
class ActuatorPart:
    """Commanded pressure -> piston force area*max(0, p - p_return), with first-order lag or fill time."""

    owner: str
    input: int
    kind: int
    area: float
    p_return: float
    tau_rise: float
    tau_fall: float
    t_fill: float
    t_empty: float
    p_max: float
    #: pressure at the start
    p0: float = 0.0


@dataclass(frozen=True)
class Reaction:
    """gain*lambda + own_gain*(force of the friction element `own`), lambda: force along the form of the constraint; or,
    with `housing`, gain*(torque of everything on these flanges, as far as they are in the housing); or, with `joint`,
    gain*(torque of a joint shaft on its flange)."""

    owner: str
    #: -1: none, but `housing` or `joint`
    constraint: int
    gain: float
    #: index of a friction element, -1: none
    own: int
    own_gain: float
    housing: frozenset[str] = frozenset()
    #: a joint shaft, and its flange: 0 a, 1 b
    joint: tuple[int, int] | None = None


@dataclass(frozen=True)
class LossPart:
    """Loss of a gear that depends on its load r (a reaction) and on the sense of its speed w (the form of `friction`).

    w > 0: loss = max(kA*r + cA, kB*r + cB); w < 0: loss = min(kA*r - cA, kB*r - cB); w = 0: anything between.
    """

    owner: str
    friction: int
    reaction: int
    #: 0: curves are eta1, eta2, tbf1, tbf2 (kA = 1 - eta1, kB = 1 - 1/eta2, cA = |tbf1|, cB = |tbf2|);
    #: 1: kA, kB, cA, cB themselves
    form: int
    curves: tuple[Table1D, Table1D, Table1D, Table1D]
    #: -1: curves over |w|; else over this input
    input: int


@dataclass(frozen=True)
class ContactPart:
    """Spring-damper with clearance along the form: free for lo <= x <= hi; kind 0 ElastoBacklash, 1 ElastoBacklash2.
    The spring force is c times the power n >= 1 of the deflection, N/m^n or N.m/rad^n."""

    owner: str
    form: Form
    c: float
    d: float
    lo: float
    hi: float
    kind: int
    n: float = 1.0


@dataclass(frozen=True)
class StopPart:
    """Hard stops of the form of `friction`: lo <= x <= hi (infinite: no such side); an end only pushes back.

    With an input: teeth that engage up to the speed `sync` and let go up to the torque `release` (rad/s, N.m; m/s, N).
    """

    owner: str
    friction: int
    lo: float
    hi: float
    input: int = -1
    sync: float = 0.0
    release: float = 0.0


@dataclass(frozen=True)
class DrivenPart:
    """A motion forced by inputs upon the form of `friction` (a bilateral element)."""

    owner: str
    friction: int
    kind: int
    #: -1: none
    inputs: tuple[int, int, int]
    p: tuple[float, float]


@dataclass(frozen=True)
class EddyPart:
    """Eddy-current brake along the form: -2*tau*x/(1 + x^2), x = w/(wn*(1 + alpha*(T - T_ref)))."""

    owner: str
    form: Form
    tau: float
    wn: float
    alpha: float
    T_ref: float
    #: thermal port whose temperature counts; None (or an open one): T
    port: str | None
    T: float


@dataclass(frozen=True)
class DragPart:
    """Drag of an open wet clutch along the form: -f*d*w up to |w| = wc, f*d*wc*((1-b)*x + b*x^3), x = wc/|w|, beyond.

    d and wc^2 go with the viscosity exp(-beta*(T - T_ref)); f = input, 1 without (-1).
    """

    owner: str
    form: Form
    d: float
    wc: float
    b: float
    beta: float
    T_ref: float
    #: thermal port whose temperature counts; None (or an open one): T
    port: str | None
    T: float
    input: int


@dataclass(frozen=True)
class CurvePart:
    """Force along the form: gain*tab1(w), or gain*tab2(w, argument); absolute: over |w| and times sign(w)."""

    owner: str
    form: Form
    tab1: Table1D | None
    tab2: Table2D | None
    #: ("input", its index) or ("temperature", thermal port); None for tab1
    argument: tuple[str, int | str] | None
    gain: float
    absolute: bool


@dataclass(frozen=True)
class BodyElement:
    """A rigid body with rotors: torque -omega x H, force m*(g - omega x v), along the axes of the body."""

    owner: str
    #: angular velocity, velocity of the mass centre, spin H
    w: tuple[Form, Form, Form]
    v: tuple[Form, Form, Form]
    h: tuple[Form, Form, Form]
    #: inputs with the torques of a Cardan suspension, -1: none
    tau: tuple[int, ...]
    m: float
    g: tuple[float, float, float]
    q: tuple[float, float, float, float]
    r: tuple[float, float, float]


@dataclass(frozen=True)
class VariableGearPart:
    """w_a = i*w_b with a ratio that changes: i = input, curve(input) or curve(|w_a|); `friction` carries its torque."""

    owner: str
    friction: int
    form_a: Form
    form_b: Form
    kind: int
    input: int
    curve: Table1D | None


@dataclass(frozen=True)
class Output:
    """A named result: kind, and a form (rows) or the index of the element; a power needs both."""

    name: str
    unit: str
    kind: int
    form: Form | None
    index: int
    gain: float
    #: where `index` is that of a port (a source of torque): its group, one of vocabulary.PORT_GROUPS
    group: str | None = None
    #: thermal port of a temperature
    port: str | None = None


@dataclass(frozen=True)
class Initial:
    """A prescribed start value: "w" or "phi" of a form."""

    label: str
    form: Form
    quantity: str
    value: float


@dataclass
class Parts:
    """Everything collected from all components, in the order of the sorted component names."""

    joins: list[Join] = field(default_factory=list)
    constraints: list[Constraint] = field(default_factory=list)
    inertias: list[InertiaPart] = field(default_factory=list)
    compliances: list[Compliance] = field(default_factory=list)
    torques: list[TorqueSource] = field(default_factory=list)
    polynomials: list[Polynomial] = field(default_factory=list)
    engines: list[EnginePart] = field(default_factory=list)
    converters: list[ConverterPart] = field(default_factory=list)
    frictions: list[FrictionPart] = field(default_factory=list)
    actuators: list[ActuatorPart] = field(default_factory=list)
    reactions: list[Reaction] = field(default_factory=list)
    losses: list[LossPart] = field(default_factory=list)
    contacts: list[ContactPart] = field(default_factory=list)
    driven: list[DrivenPart] = field(default_factory=list)
    stops: list[StopPart] = field(default_factory=list)
    eddies: list[EddyPart] = field(default_factory=list)
    curves: list[CurvePart] = field(default_factory=list)
    drags: list[DragPart] = field(default_factory=list)
    bodies: list[BodyElement] = field(default_factory=list)
    joints: JointParts = field(default_factory=JointParts)
    #: bodies whose inertia cannot be, in words
    impossible: list[str] = field(default_factory=list)
    variable_gears: list[VariableGearPart] = field(default_factory=list)
    thermal: ThermalParts = field(default_factory=ThermalParts)
    frames: FrameParts = field(default_factory=FrameParts)
    #: outputs that are sums
    sums: list[tuple[Term, ...]] = field(default_factory=list)
    outputs: list[Output] = field(default_factory=list)
    initials: list[Initial] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    input_units: list[str] = field(default_factory=list)
    #: input that is a time derivative of another one -> (that one, order)
    derived_inputs: dict[str, tuple[str, int]] = field(default_factory=dict)
    default_inputs: dict[str, InputSignal] = field(default_factory=dict)
    #: what an input may be, SI, where its law is made for a range only
    input_ranges: dict[str, tuple[float, float]] = field(default_factory=dict)


def port_groups(parts: Parts) -> dict[str, list[tuple[str, Form]]]:
    """(component, form) of all ports (sources of torque) by group, in the order of their numbers in the kernel."""
    return {
        "torque": [(p.owner, p.form) for p in parts.torques],
        "polynomial": [(p.owner, p.form) for p in parts.polynomials],
        "engine": [(p.owner, p.form) for p in parts.engines],
        "pump": [(p.owner, p.pump) for p in parts.converters],
        "turbine": [(p.owner, p.turbine) for p in parts.converters],
        "eddy": [(p.owner, p.form) for p in parts.eddies],
        "curve": [(p.owner, p.form) for p in parts.curves],
        "drag": [(p.owner, p.form) for p in parts.drags],
        **{f"body_w{axis}": [(p.owner, p.w[k]) for p in parts.bodies] for k, axis in enumerate("xyz")},
        **{f"body_v{axis}": [(p.owner, p.v[k]) for p in parts.bodies] for k, axis in enumerate("xyz")},
        "joint_body": [
            (p.owner, form)
            for p in parts.joints.shafts
            if p.posed is not None
            for k in p.posed.body
            if k >= 0
            for form in (*parts.frames.bodies[k].w, *parts.frames.bodies[k].v)
        ],
        "joint_a": [(p.owner, p.form_a) for p in parts.joints.shafts],
        "joint_b": [(p.owner, p.form_b) for p in parts.joints.shafts],
    }


def port_forms(parts: Parts) -> list[Form]:
    """Forms of all ports in the order of their numbers."""
    return [form for group in port_groups(parts).values() for _, form in group]


def port_number(parts: Parts, group: str, index: int) -> int:
    """Number of a port from its group and its index there."""
    before = PORT_GROUPS[: PORT_GROUPS.index(group)]
    groups = port_groups(parts)
    return sum(len(groups[g]) for g in before) + index
