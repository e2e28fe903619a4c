"""What components hand over when a driveline is compiled: joints, gear rows, inertias, force elements, names.

Speeds and angles are written as `Form`s (vocabulary.py): sums of flange speeds with rational coefficients. Nothing here
knows about matrices; the compiler turns forms into rows over the independent coordinates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from torqueloop.core.components.base import ROTATIONAL, Component, checked_curve, params_of
from torqueloop.core.errors import TableError, UnknownNameError, did_you_mean
from torqueloop.core.tables import Table, Table1D, Table2D
from torqueloop.core.units import SYMBOLS
from torqueloop.core.vocabulary import CAPPED, OUT_ACCELERATION, OUT_ANGLE, OUT_SPEED, Form

if TYPE_CHECKING:
    from torqueloop.core.signals import Signal

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
    """An ideal gear: form.w = 0 (and form.phi = 0)."""

    owner: str
    form: Form


@dataclass(frozen=True)
class InertiaPart:
    owner: str
    flange: str
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


@dataclass(frozen=True)
class Output:
    """A named result: kind, and either a form (rows) or the index of the element."""

    name: str
    unit: str
    kind: int
    form: Form | None
    index: int
    gain: float


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
    outputs: list[Output] = field(default_factory=list)
    initials: list[Initial] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    input_units: list[str] = field(default_factory=list)
    default_inputs: dict[str, Signal] = field(default_factory=dict)


class Builder:
    """The side of the compiler that one component sees."""

    def __init__(self, parts: Parts, name: str, component: Component, tables: Mapping[str, Table]) -> None:
        self._parts = parts
        self._tables = tables
        #: name of the component in its driveline
        self.name = name
        self._component = component

    # --- speeds and tables ------------------------------------------------------------------------------------
    def w(self, flange: str) -> Form:
        """Speed (and angle) of a flange."""
        assert flange in self._component.flanges, f"{self._component.kind} has no flange {flange}"
        return Form({f"{self.name}.{flange}": 1})

    def table1(self, param: str) -> Table1D:
        """The curve of a parameter, looked up by name where it is one."""
        value = getattr(self._component, param)
        if not isinstance(value, str):
            assert isinstance(value, Table1D)
            return value
        table = self._lookup(param, value)
        if not isinstance(table, Table1D):
            raise TableError(f"table {value!r} is a map, but {param} needs a curve", table=f"components.{self.name}")
        try:
            return checked_curve(f"table {value!r}", params_of(type(self._component))[param], table)
        except TableError as error:
            raise error.located(table=f"components.{self.name}", key=param) from None

    def table2(self, param: str) -> Table2D:
        """The map of a parameter, looked up by name where it is one."""
        value = getattr(self._component, param)
        if not isinstance(value, str):
            assert isinstance(value, Table2D)
            return value
        table = self._lookup(param, value)
        dims = params_of(type(self._component))[param].columns
        if not isinstance(table, Table2D):
            raise TableError(f"table {value!r} is a curve, but {param} needs a map", table=f"components.{self.name}")
        try:
            return table.expecting((dims[0], dims[1], dims[2]), f"table {value!r}")
        except TableError as error:
            raise error.located(table=f"components.{self.name}", key=param) from None

    def _lookup(self, param: str, name: str) -> Table:
        if name not in self._tables:
            raise UnknownNameError(
                f"there is no table {name!r} for {param}",
                table=f"components.{self.name}", key=param, value=name, hint=did_you_mean(name, self._tables),
            )  # fmt: skip
        return self._tables[name]

    # --- structure --------------------------------------------------------------------------------------------
    def join(self, first: str, second: str, offset: Fraction | int = 0) -> None:
        """Two own flanges that move together."""
        self._parts.joins.append(Join(self.name, f"{self.name}.{first}", f"{self.name}.{second}", Fraction(offset)))

    def ground(self, flange: str, phi0: float) -> None:
        """An own flange that is part of the housing, at angle phi0."""
        self._parts.joins.append(Join(self.name, GROUND, f"{self.name}.{flange}", Fraction(phi0)))

    def constraint(self, form: Form) -> None:
        """An ideal gear row."""
        self._parts.constraints.append(Constraint(self.name, form))

    def inertia(self, flange: str, J: float) -> None:
        """Inertia or mass that moves with a flange."""
        self._parts.inertias.append(InertiaPart(self.name, f"{self.name}.{flange}", J))

    # --- force elements (each returns its index) --------------------------------------------------------------
    def compliance(self, form: Form, c: float, d: float, phi0: float = 0.0) -> int:
        self._parts.compliances.append(Compliance(self.name, form, c, d, phi0))
        return len(self._parts.compliances) - 1

    def torque(self, form: Form, *, input: int = -1, gain: float = 1.0, const: float = 0.0) -> int:
        self._parts.torques.append(TorqueSource(self.name, form, input, gain, const))
        return len(self._parts.torques) - 1

    def polynomial(self, form: Form, k0: float = 0.0, k1: float = 0.0, k2: float = 0.0, k3: float = 0.0) -> int:
        self._parts.polynomials.append(Polynomial(self.name, form, (k0, k1, k2, k3)))
        return len(self._parts.polynomials) - 1

    def engine(self, **values: object) -> int:
        self._parts.engines.append(EnginePart(self.name, **values))  # type: ignore[arg-type]
        return len(self._parts.engines) - 1

    def converter(self, **values: object) -> int:
        self._parts.converters.append(ConverterPart(self.name, **values))  # type: ignore[arg-type]
        return len(self._parts.converters) - 1

    def actuator(self, **values: object) -> int:
        self._parts.actuators.append(ActuatorPart(self.name, **values))  # type: ignore[arg-type]
        return len(self._parts.actuators) - 1

    def friction(
        self,
        form: Form,
        *,
        source: int,
        source_index: int = -1,
        gain: float = 1.0,
        cgeo: float = 1.0,
        mu: Table1D | None = None,
        peak: float = 1.0,
        forward: int = CAPPED,
        backward: int = CAPPED,
        hold: float = 0.0,
    ) -> int:
        self._parts.frictions.append(
            FrictionPart(self.name, form, source, source_index, gain, cgeo, mu, peak, forward, backward, hold)
        )
        return len(self._parts.frictions) - 1

    # --- names ------------------------------------------------------------------------------------------------
    def input(self, short: str, dimension: str) -> int:
        """An input "<component>.<short>"; its index."""
        self._parts.inputs.append(f"{self.name}.{short}")
        self._parts.input_units.append(SYMBOLS[dimension])
        return len(self._parts.inputs) - 1

    def output(
        self, short: str, dimension: str, kind: int, *, form: Form | None = None, index: int = 0, gain: float = 1.0
    ) -> None:
        """An output "<component>.<short>"."""
        self._parts.outputs.append(Output(f"{self.name}.{short}", SYMBOLS[dimension], kind, form, index, gain))

    def motion_outputs(self, form: Form, domain: str = ROTATIONAL) -> None:
        """phi, w, a (or s, v, a) of a moving part."""
        if domain == ROTATIONAL:
            names = (("phi", "angle"), ("w", "angular_velocity"), ("a", "angular_acceleration"))
        else:
            names = (("s", "length"), ("v", "velocity"), ("a", "acceleration"))
        for (short, dimension), kind in zip(names, (OUT_ANGLE, OUT_SPEED, OUT_ACCELERATION), strict=True):
            self.output(short, dimension, kind, form=form)

    def relative_outputs(self, form: Form) -> None:
        """phi_rel and w_rel of an element between two shafts."""
        self.output("phi_rel", "angle", OUT_ANGLE, form=form)
        self.output("w_rel", "angular_velocity", OUT_SPEED, form=form)

    def initial(self, quantity: str, form: Form, value: float | None, param: str) -> None:
        """A start value given as a parameter (None: not given)."""
        if value is not None:
            self._parts.initials.append(Initial(f"{self.name}.{param}", form, quantity, value))
