"""What components contribute when a driveline is compiled: joints, gear rows, inertias, force elements, names.

Speeds and angles are written as `Form`s (vocabulary.py): sums of flange speeds with rational coefficients. Nothing here
knows about matrices; the compiler turns forms into rows over the independent coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Protocol

from torqueloop.core.describe.errors import TableError, UnknownNameError, did_you_mean
from torqueloop.core.describe.flange import FRAME, ROTATIONAL, THERMAL, Flange
from torqueloop.core.describe.frame_parts import (
    BodyPart,
    BushingPart,
    CarrierPart,
    HingePart,
    LeavingPart,
    MomentPart,
    MountedPart,
    RotorPart,
    SpeedPart,
    Vector,
)
from torqueloop.core.describe.heat_parts import Conductance, FixedTemperature, HeatCapacity, HeatSource
from torqueloop.core.describe.joint_parts import BearingPart, JointPart, RigidJointPart
from torqueloop.core.describe.kernel_numbers import (
    BILATERAL,
    BLOCKED,
    CAPPED,
    LOSS,
    OUT_ACCELERATION,
    OUT_ANGLE,
    OUT_SPEED,
    OUT_TEMPERATURE,
    STOP,
)
from torqueloop.core.describe.motion import MOTIONS, OF_A_PART
from torqueloop.core.describe.params import checked_curve, params_of
from torqueloop.core.describe.parts import (
    GROUND,
    ActuatorPart,
    Compliance,
    Constraint,
    ContactPart,
    ConverterPart,
    CurvePart,
    DragPart,
    DrivenPart,
    EddyPart,
    EnginePart,
    FrictionPart,
    InertiaPart,
    Initial,
    Join,
    LossPart,
    Output,
    Parts,
    Polynomial,
    Reaction,
    StopPart,
    TorqueSource,
    VariableGearPart,
)
from torqueloop.core.describe.ranges import RANGES
from torqueloop.core.describe.tables import Columns, Table, Table1D, Table2D
from torqueloop.core.describe.units import SYMBOLS
from torqueloop.core.describe.vocabulary import PORT_GROUPS, Form


class Contributor(Protocol):
    """What the builder asks a component for: its kind, its flanges, and (by name) the values of its parameters."""

    @property
    def kind(self) -> str: ...

    @property
    def flanges(self) -> Mapping[str, Flange]: ...


class Builder:
    """The side of the compiler that one component sees."""

    def __init__(self, parts: Parts, name: str, component: Contributor, tables: Mapping[str, Table]) -> None:
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
            raise TableError(f"table {value!r} is no curve, but {param} needs one", table=f"components.{self.name}")
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
            raise TableError(f"table {value!r} is no map, but {param} needs one", table=f"components.{self.name}")
        try:
            return table.expecting((dims[0], dims[1], dims[2]), f"table {value!r}")
        except TableError as error:
            raise error.located(table=f"components.{self.name}", key=param) from None

    def columns(self, param: str) -> Columns:
        """The table with several columns of a parameter, looked up by name where it is one."""
        value = getattr(self._component, param)
        if not isinstance(value, str):
            assert isinstance(value, Columns)
            return value
        table = self._lookup(param, value)
        if not isinstance(table, Columns):
            wanted = len(params_of(type(self._component))[param].columns)
            raise TableError(f"table {value!r} has not the {wanted} columns {param} needs", key=param,
                             table=f"components.{self.name}")  # fmt: skip
        try:
            return table.expecting(params_of(type(self._component))[param].columns, f"table {value!r}")
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

    def constraint(self, form: Form, phi: Fraction | int = 0, held: bool = False) -> int:
        """An ideal gear row form.w = 0 (form.phi = phi); the index is for `reaction` and `loss`. `held`: a shaft it
        blocks stands still on purpose."""
        self._parts.constraints.append(Constraint(self.name, form, Fraction(phi), held))
        return len(self._parts.constraints) - 1

    def inertia(self, flange: str, J: float) -> None:
        """Inertia or mass that moves with a flange."""
        self._parts.inertias.append(InertiaPart(self.name, self.w(flange), J))

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

    def reaction(self, constraint: int, *, gain: float = 1.0, own: int | None = None, own_gain: float = 0.0) -> int:
        """gain*lambda + own_gain*tau: lambda is the force along the form of an own constraint, tau the force along the
        form of friction element `own`."""
        self._parts.reactions.append(Reaction(self.name, constraint, gain, -1 if own is None else own, own_gain))
        return len(self._parts.reactions) - 1

    def loss(
        self,
        form: Form,
        *,
        constraint: int,
        gain: float,
        own_gain: float,
        eta1: Table1D | None = None,
        eta2: Table1D | None = None,
        tbf1: Table1D | None = None,
        tbf2: Table1D | None = None,
        kA: Table1D | None = None,
        kB: Table1D | None = None,
        cA: Table1D | None = None,
        cB: Table1D | None = None,
        input: int = -1,
    ) -> int:
        """A friction element along `form` whose torque depends on the load of a constraint (see LossPart).

        The load is r = gain*lambda + own_gain*tau. Give either the efficiencies and bearing torques or kA, kB, cA, cB.
        Returns the friction index; the reaction and the loss have their own numbers (`loss_of`, `reaction_of`).
        """
        given = [(0, (eta1, eta2, tbf1, tbf2)), (1, (kA, kB, cA, cB))]
        complete = [(kind, curves) for kind, curves in given if None not in curves]
        assert len(complete) == 1 and sum(c is not None for _, curves in given for c in curves) == 4, "give four curves"
        kind, curves = complete[0]
        friction = self.friction(form, source=LOSS, source_index=len(self._parts.losses))
        reaction = self.reaction(constraint, gain=gain, own=friction, own_gain=own_gain)
        self._parts.losses.append(LossPart(self.name, friction, reaction, kind, curves, input))  # type: ignore[arg-type]
        return friction

    def loss_of(self, friction: int) -> tuple[int, int]:
        """(loss index, reaction index) of a friction element made by `loss`, for outputs."""
        index = self._parts.frictions[friction].source_index
        return index, self._parts.losses[index].reaction

    def contact(self, form: Form, c: float, d: float, lo: float, hi: float, kind: int = 0, n: float = 1.0) -> int:
        """Contact below lo and above hi (infinite: no such side), its spring force with the exponent n."""
        self._parts.contacts.append(ContactPart(self.name, form, c, d, lo, hi, kind, n))
        return len(self._parts.contacts) - 1

    def stop(
        self, form: Form, lo: float = -math.inf, hi: float = math.inf, teeth: tuple[int, float, float] = (-1, 0.0, 0.0)
    ) -> tuple[int, int]:
        """Hard stops at both ends of lo <= x <= hi (infinite: none there); indices of stop and friction force.

        teeth (input, speed [rad/s, m/s], torque [N.m, N]): instead, they hold both ways. Asked for by an input >= 0.5
        they engage where |w| is at most that speed; else they let go where they carry at most that torque.
        """
        index = len(self._parts.stops)
        friction = self.friction(
            form, source=STOP, source_index=index, gain=0.0, forward=BLOCKED, backward=BLOCKED
        )  # fmt: skip
        self._parts.stops.append(StopPart(self.name, friction, lo, hi, *teeth))
        return index, friction

    def driven(self, form: Form, kind: int, inputs: tuple[int, ...] = (), p: tuple[float, ...] = ()) -> int:
        """A motion forced upon the form (vocabulary: DRIVEN_*); returns the friction index, whose force drives it."""
        friction = self.friction(
            form, source=BILATERAL, source_index=len(self._parts.driven), gain=0.0, forward=BLOCKED, backward=BLOCKED
        )
        i, j, k = (*inputs, -1, -1, -1)[:3]
        p0, p1 = (*p, 0.0, 0.0)[:2]
        self._parts.driven.append(DrivenPart(self.name, friction, kind, (i, j, k), (p0, p1)))
        return friction

    def variable_gear(
        self, form_a: Form, form_b: Form, kind: int, *, input: int = -1, curve: Table1D | None = None
    ) -> int:
        """w_a = i*w_b with changing i (vocabulary: RATIO_*); both sides need inertia of their own.

        The friction element that carries its torque has the number parts.variable_gears[index].friction; its force f
        acts as +f on side a and -i*f on side b.
        """
        friction = self.friction(
            form_a, source=BILATERAL, source_index=len(self._parts.variable_gears), gain=0.0,
            forward=BLOCKED, backward=BLOCKED,
        )  # fmt: skip
        self._parts.variable_gears.append(VariableGearPart(self.name, friction, form_a, form_b, kind, input, curve))
        return len(self._parts.variable_gears) - 1

    def gear_friction(self, gear: int) -> int:
        """Friction index of a variable gear, for the output of its torque."""
        return self._parts.variable_gears[gear].friction

    def eddy(
        self, form: Form, tau: float, wn: float, alpha: float, T_ref: float, port: str | None = None, T: float = 293.15
    ) -> int:
        """Eddy-current brake; at the temperature of a thermal port, or at T when there is none or it is open."""
        full = None if port is None else self._port(port)
        self._parts.eddies.append(EddyPart(self.name, form, tau, wn, alpha, T_ref, full, T))
        return len(self._parts.eddies) - 1

    def drag(
        self, form: Form, d: float, wc: float, b: float, beta: float, T_ref: float, port: str, T: float, input: int
    ) -> int:
        """Drag of an open wet clutch (DragPart); at the temperature of a thermal port, or at T while it is open."""
        self._parts.drags.append(DragPart(self.name, form, d, wc, b, beta, T_ref, self._port(port), T, input))
        return len(self._parts.drags) - 1

    def joint_shaft(self, form_a: Form, form_b: Form, c: float, d: float, **values: Any) -> tuple[int, int]:
        """A shaft with stiffness c and damping d between two joints (JointPart); its index and that of the spring."""
        lin = self.compliance(form_a - form_b, c, d)
        self._parts.joints.shafts.append(JointPart(self.name, form_a, form_b, lin, c=c, d=d, **values))
        return len(self._parts.joints.shafts) - 1, lin

    def rigid_joint(self, bend: float | None, tau: int, moment: int) -> None:
        """A joint of constant velocity: the reactions that are its torque and its moment (RigidJointPart)."""
        self._parts.joints.rigid.append(RigidJointPart(self.name, bend, tau, moment))

    def bearing(self, flange: str, frame: str, n: Vector, r: Vector) -> None:
        """The direction of the shaft at a flange, and the place of its joint, on a carrier (BearingPart)."""
        self._parts.joints.bearings.append(BearingPart(self.name, f"{self.name}.{flange}", self._frame(frame), n, r))

    def curve_force(
        self,
        form: Form,
        *,
        tab1: Table1D | None = None,
        tab2: Table2D | None = None,
        arg: tuple[str, int | str] | None = None,
        gain: float = 1.0,
        absolute: bool = False,
    ) -> int:
        """Force along the form from a curve over its speed, or from a map over speed and an input or temperature."""
        assert (tab1 is None) != (tab2 is None) and (tab2 is None) == (arg is None)
        if arg is not None and arg[0] == "temperature":
            arg = ("temperature", self._port(str(arg[1])))
        self._parts.curves.append(CurvePart(self.name, form, tab1, tab2, arg, gain, absolute))
        return len(self._parts.curves) - 1

    # --- heat -------------------------------------------------------------------------------------------------
    def _port(self, short: str) -> str:
        """Full name of an own thermal flange or inner thermal node."""
        full = f"{self.name}.{short}"
        flange = self._component.flanges.get(short)
        known = flange.domain == THERMAL if flange is not None else full in self._parts.thermal.nodes
        assert known, f"{self._component.kind} has no thermal port {short}"
        return full

    def thermal_node(self, short: str) -> None:
        """A thermal node inside the component, used like a port."""
        self._parts.thermal.nodes.append(f"{self.name}.{short}")

    def heat_capacity(self, port: str, C: float, T0: float) -> None:
        """C*dT/dt = heat flow into the port."""
        self._parts.thermal.capacities.append(HeatCapacity(self.name, self._port(port), C, T0))

    def fixed_temperature(self, port: str, T: float, input: int = -1) -> None:
        """The port has temperature T, or the one an input gives (K)."""
        self._parts.thermal.fixed.append(FixedTemperature(self.name, self._port(port), T, input))

    def conductance(
        self,
        port_a: str,
        port_b: str,
        G: float,
        *,
        input: int = -1,
        curve: Table1D | None = None,
        curve_port: str | None = None,
    ) -> None:
        """Heat flow G*factor*(T_a - T_b) from a to b; factors: an input, a curve over the temperature of a port."""
        assert (curve is None) == (curve_port is None)
        arg = None if curve_port is None else self._port(curve_port)
        self._parts.thermal.conductances.append(
            Conductance(self.name, self._port(port_a), self._port(port_b), G, input, curve, arg)
        )

    def heat(self, port: str, kind: int, index: int | tuple[str, int], gain: float = 1.0) -> None:
        """Power lost in an element (vocabulary: HEAT_*) or an input in W flows into the port; nothing if it is open.

        HEAT_OF_PORT takes (group, index) as outputs of ports do; the heat is minus the power into the driveline.
        """
        group, number = index if isinstance(index, tuple) else (None, index)
        assert group is None or group in PORT_GROUPS
        self._parts.thermal.sources.append(HeatSource(self.name, self._port(port), kind, group, number, gain))

    def temperature_output(self, short: str, port: str) -> None:
        """Temperature of a port as an output (there is none while the port is open)."""
        unit = SYMBOLS["temperature"]
        self._parts.outputs.append(
            Output(f"{self.name}.{short}", unit, OUT_TEMPERATURE, None, 0, 1.0, port=self._port(port))
        )

    # --- carriers -----------------------------------------------------------------------------------------------
    def _frame(self, short: str) -> str:
        assert self._component.flanges[short].domain == FRAME, f"{self._component.kind}: {short} is no frame"
        return f"{self.name}.{short}"

    def carrier(self, frame: str, w: tuple[int, ...] = (), z: tuple[int, ...] = (), **pose: Any) -> None:
        """The reference of a carrier: inputs, its angular velocity and acceleration along x, y, z; none: at rest. Its
        pose: CarrierPart."""
        self._parts.frames.carriers.append(CarrierPart(self.name, self._frame(frame), w, z, **pose))

    def body(self, frame: str, w: tuple[Form, Form, Form], v: tuple[Form, Form, Form], **values: Any) -> None:
        """A rigid body as the reference of a carrier (BodyPart)."""
        self._parts.frames.bodies.append(BodyPart(self.name, self._frame(frame), w, v, **values))

    def hinge(self, frame: str, r: Vector, blocked: tuple[Vector, ...] = (), tau: tuple[int, ...] = ()) -> None:
        """A point of a body that stays where it is (HingePart)."""
        self._parts.frames.hinges.append(HingePart(self.name, self._frame(frame), r, blocked, tau))

    def bushing(self, frame: str, r: Vector, c: Vector, d: Vector, c_rot: Vector, d_rot: Vector) -> None:
        """Springs and dampers between the world and a point of a body (BushingPart)."""
        self._parts.frames.bushings.append(BushingPart(self.name, self._frame(frame), r, c, d, c_rot, d_rot))

    def leaving(self, frame: str, form: Form, n: Vector) -> None:
        """form = n.omega of the body (LeavingPart)."""
        self._parts.frames.leaving.append(LeavingPart(self.name, self._frame(frame), form, n))

    def rotor(self, frame: str, form: Form, J: float, n: Vector, exact: bool) -> None:
        """What the motion of the carrier does to a rotor, and the rotor to it (RotorPart); J itself: inertia."""
        self._parts.frames.rotors.append(RotorPart(self.name, self._frame(frame), form, J, n, exact))

    def moment(self, frame: str, reaction: int, direction: Vector) -> None:
        """Moment reaction*direction on the carrier."""
        self._parts.frames.moments.append(MomentPart(self.name, self._frame(frame), reaction, direction))

    def mounted(self, frame: str, names: str, n: Vector, exact: bool) -> None:
        """Components that stand on the carrier as they are, all their shafts along n (MountedPart)."""
        self._parts.frames.mounted.append(MountedPart(self.name, self._frame(frame), names, n, exact))

    def absolute_speed(self, short: str, frame: str, form: Form, n: Vector) -> None:
        """Output: speed of the form plus n.omega of the carrier."""
        self._parts.frames.speeds.append(SpeedPart(self.name, self._frame(frame), short, form, n))

    # --- names ------------------------------------------------------------------------------------------------
    def input(self, short: str, dimension: str, allowed: tuple[float, float] | None = None) -> int:
        """An input "<component>.<short>"; its index. `allowed`: the range its law is made for, for what files give;
        default: that of the quantity (ranges.py)."""
        self._parts.inputs.append(f"{self.name}.{short}")
        whole = RANGES[dimension]
        self._parts.input_ranges[f"{self.name}.{short}"] = allowed or (whole.low, whole.high)
        self._parts.input_units.append(SYMBOLS[dimension])
        return len(self._parts.inputs) - 1

    def derived_input(self, of: str, order: int, dimension: str) -> int:
        """The time derivative of own input `of`: "<component>.<of>'" (order 1) or "''" (order 2)."""
        index = self.input(of + "'" * order, dimension)
        self._parts.derived_inputs[self._parts.inputs[index]] = (f"{self.name}.{of}", order)
        return index

    def output(
        self,
        short: str,
        dimension: str,
        kind: int,
        *,
        form: Form | None = None,
        index: int = 0,
        gain: float = 1.0,
        port: tuple[str, int] | None = None,
    ) -> None:
        """An output "<component>.<short>": of a form, of the index of an element, or of a port (group, index).

        OUT_REACTION_POWER takes both: reaction `index` times the speed of `form`.
        """
        group, number = port if port is not None else (None, index)
        assert group is None or group in PORT_GROUPS
        self._parts.outputs.append(Output(f"{self.name}.{short}", SYMBOLS[dimension], kind, form, number, gain, group))

    def motion_outputs(self, form: Form, domain: str = ROTATIONAL) -> None:
        """phi, w, a (or s, v, a) of a moving part."""
        motion = MOTIONS[domain]
        for (short, dimension), kind in zip(OF_A_PART, (OUT_ANGLE, OUT_SPEED, OUT_ACCELERATION), strict=True):
            self.output(motion.text(short), motion.dimension(dimension), kind, form=form)

    def relative_outputs(self, form: Form, domain: str = ROTATIONAL) -> None:
        """phi_rel and w_rel (or s_rel, v_rel) of an element between two parts."""
        motion = MOTIONS[domain]
        for (short, dimension), kind in zip(OF_A_PART[:2], (OUT_ANGLE, OUT_SPEED), strict=True):
            self.output(motion.text(short) + "_rel", motion.dimension(dimension), kind, form=form)

    def initial(self, quantity: str, form: Form, value: float | None, param: str) -> None:
        """A start value given as a parameter (None: not given)."""
        if value is not None:
            self._parts.initials.append(Initial(f"{self.name}.{param}", form, quantity, value))
