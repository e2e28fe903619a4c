"""Driveline -> CompiledModel: the constant arrays of the kernel, and all names.

    M*du/dt = sum over elements of (row of element)^T * (force along the row)
    M = N^T*J*N (reduced inertia, symmetric positive definite but for coordinates that relax: relaxing.py)

u: n independent speeds, z' = u; a row r gives w = r.u and phi = r.z + row_off. Forces are positive along their row.
Rows of force elements come first (n_hot of them). Force of each element: model/records.py; reactions.py: the forces
inside gears, thermal.py the heat network; tab1_*, tab2_* are curves and maps, `out` the named outputs. The order
of everything follows the sorted names, never the order of listing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import field
from fractions import Fraction

import numpy as np

from torqueloop.core.compile.element_arrays import element_arrays, output_arrays, relaxing_arrays, sum_arrays
from torqueloop.core.compile.exact import reduce
from torqueloop.core.compile.frames import settle_frames
from torqueloop.core.compile.initial import StartConditions, start_conditions, start_pressures
from torqueloop.core.compile.massless import settle_massless
from torqueloop.core.compile.packing import RowStore, TableStore, floats
from torqueloop.core.compile.reactions import reaction_arrays
from torqueloop.core.compile.rounding import check_rounding
from torqueloop.core.compile.slips import coordinates, slips_as_coordinates
from torqueloop.core.compile.thermal import thermal_arrays, thermal_net
from torqueloop.core.compile.topology import Row, Topology, build
from torqueloop.core.describe.builder import Builder
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import (
    CompileError,
    ConfigError,
    NoInertiaError,
    OverconstrainedError,
    UnknownNameError,
    did_you_mean,
)
from torqueloop.core.describe.kernel_numbers import OUT_TEMPERATURE
from torqueloop.core.describe.naming import natural
from torqueloop.core.describe.parts import Parts
from torqueloop.core.describe.vocabulary import Form, InputSignal
from torqueloop.cython_kernels.model.model_arrays import ModelArrays


@dataclass(frozen=True, eq=False)
class CompiledModel:
    """Constant arrays for the kernel and the names that go with them."""

    #: name of the driveline
    name: str
    arrays: ModelArrays
    #: names of the independent coordinates
    coordinates: tuple[str, ...]
    input_names: tuple[str, ...]
    input_units: tuple[str, ...]
    output_names: tuple[str, ...]
    output_units: tuple[str, ...]
    #: component names of the friction elements, in the order of their records; likewise the others
    friction_names: tuple[str, ...]
    actuator_names: tuple[str, ...]
    compliance_names: tuple[str, ...]
    torque_names: tuple[str, ...]
    poly_names: tuple[str, ...]
    engine_names: tuple[str, ...]
    converter_names: tuple[str, ...]
    loss_names: tuple[str, ...]
    contact_names: tuple[str, ...]
    driven_names: tuple[str, ...]
    stop_names: tuple[str, ...]
    eddy_names: tuple[str, ...]
    curve_names: tuple[str, ...]
    variable_gear_names: tuple[str, ...]
    #: heat port each thermal node is called after
    thermal_names: tuple[str, ...]
    #: input that is a time derivative of another input -> (that one, order); filled by whoever gives the other one
    derived_inputs: Mapping[str, tuple[str, int]]
    #: signals that components give to their own inputs (input name -> signal)
    default_inputs: Mapping[str, InputSignal]
    #: what the components contributed, and the exact elimination: for analysis
    parts: Parts = field(repr=False)
    topology: Topology = field(repr=False)
    #: what is prescribed for the start
    starts: StartConditions = field(repr=False)
    #: what was decided for the user, in words
    notes: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """Number of independent speeds."""
        return len(self.coordinates)

    def input_index(self, name: str) -> int:
        """Position of an input; an unknown name is an error with the nearest known one."""
        return _index(self.input_names, name, "input")

    def output_index(self, name: str) -> int:
        """Position of an output; an unknown name is an error with the nearest known one."""
        return _index(self.output_names, name, "output")

    @property
    def ratio_inputs(self) -> tuple[str, ...]:
        """Inputs whose value at t = 0 decides start speeds: they give the ratio of a gear. See `start_speeds`."""
        return self.starts.ratio_inputs

    def start_speeds(self, inputs: Mapping[str, float]) -> np.ndarray:
        """u at t = 0 when inputs have these values (SI) then; `arrays.u0` leaves gears out whose ratio is not known.

        InitialValueError if the start values contradict each other with these ratios.
        """
        for name in inputs:
            self.input_index(name)
        return floats(coordinates(self.topology, self.starts.speeds(inputs)))

    def digest(self) -> str:
        """SHA-256 over all arrays: equal models have equal digests."""
        state = hashlib.sha256()
        for key, entry in self.arrays.items():
            value = np.asarray(entry)
            state.update(f"{key}:{value.dtype}:{value.shape};".encode())
            state.update(np.ascontiguousarray(value).tobytes())
        return state.hexdigest()


def _index(names: tuple[str, ...], name: str, what: str) -> int:
    try:
        return names.index(name)
    except ValueError:
        raise UnknownNameError(f"there is no {what} {name!r}", hint=did_you_mean(name, names)) from None


def collect(driveline: Driveline) -> Parts:
    """Let every component contribute, in the order of the sorted names."""
    parts = Parts()
    for name in sorted(driveline.components, key=natural):
        component = driveline.components[name]
        try:
            component.contribute(Builder(parts, name, component, driveline.tables))
        except ConfigError as error:
            raise error.located(file=driveline.origin.get(name, driveline.file)) from None
        for short, signal in component.default_inputs().items():
            parts.default_inputs[f"{name}.{short}"] = signal
    settle_frames(driveline.components, driveline.connections, parts)
    _check_output_names(parts)
    return parts


def analyse(driveline: Driveline) -> tuple[Parts, Topology]:
    """Parts and exact elimination without asking for inertias: enough for ratios and statics."""
    parts = collect(driveline)
    try:
        return parts, build(driveline.components, driveline.connections, parts)
    except CompileError as error:
        error.file = error.file or _origin(driveline, error)
        raise


def _origin(driveline: Driveline, error: CompileError) -> str | None:
    """The file with the first component an error names, else the driveline's own."""
    first = error.components[0] if error.components else ""
    return driveline.origin.get(first, driveline.file)


def compile_driveline(driveline: Driveline) -> CompiledModel:
    """Check everything and make the arrays."""
    try:
        return _compile(driveline)
    except CompileError as error:
        error.file = error.file or _origin(driveline, error)
        raise


def _compile(driveline: Driveline) -> CompiledModel:
    if not driveline.components:
        raise CompileError("the driveline has no components")
    parts = collect(driveline)
    net = thermal_net(driveline.components, driveline.connections, parts.thermal)
    parts.outputs = [o for o in parts.outputs if o.kind != OUT_TEMPERATURE or net.node(o.port) >= 0]
    topology = build(driveline.components, driveline.connections, parts)
    if not topology.independent:
        raise CompileError("nothing can move: every shaft is fixed in the housing")
    notes = [f"{', '.join(names)}: gears in parallel share their torque equally" for names in topology.sharing]
    notes += settle_massless(topology, parts)
    notes += [f"no such body can be: {text}" for text in parts.impossible]
    rows = RowStore(topology.independent)
    tables = TableStore()

    def hot(form: Form) -> int:
        row, offset = topology.over_independent(form)
        # what cannot move (a hinged body along some axis) has a row all the same: 0 times any speed
        return rows.add(row or {topology.independent[0]: Fraction(0)}, offset)

    _check_elements(parts, topology)
    starts = start_conditions(driveline, parts, topology)
    start_pressures(driveline, parts)
    topology = slips_as_coordinates(topology, parts)
    elements = element_arrays(parts, hot, tables, net) | thermal_arrays(net, parts, tables)
    n_hot = len(rows.rows)
    elements["out"] = output_arrays(parts, hot, net)
    elements["te"] = sum_arrays(parts, hot)
    elements["rx"] = relaxing_arrays(topology, rows)
    arrays = ModelArrays(
        M=_reduced_inertia(topology, parts),
        u0=floats(coordinates(topology, starts.speeds())),
        z0=floats(coordinates(topology, starts.angles())),
        **rows.arrays(),
        **tables.arrays(),
        **reaction_arrays(topology, parts),
        nin=len(parts.inputs),
        n_hot=n_hot,
        order=_order(driveline, parts),
        elements=elements,
    )
    starts.check_stops(parts)
    check_rounding(driveline, arrays, [p.owner for p in parts.compliances])
    return CompiledModel(
        name=driveline.name,
        arrays=arrays,
        coordinates=tuple(topology.independent),
        input_names=tuple(parts.inputs),
        input_units=tuple(parts.input_units),
        output_names=(*(o.name for o in parts.outputs), "energy.kinetic", "energy.potential"),
        output_units=(*(o.unit for o in parts.outputs), "J", "J"),
        friction_names=tuple(p.owner for p in parts.frictions),
        actuator_names=tuple(p.owner for p in parts.actuators),
        compliance_names=tuple(p.owner for p in parts.compliances),
        torque_names=tuple(p.owner for p in parts.torques),
        poly_names=tuple(p.owner for p in parts.polynomials),
        engine_names=tuple(p.owner for p in parts.engines),
        converter_names=tuple(p.owner for p in parts.converters),
        loss_names=tuple(p.owner for p in parts.losses),
        contact_names=tuple(p.owner for p in parts.contacts),
        driven_names=tuple(p.owner for p in parts.driven),
        stop_names=tuple(p.owner for p in parts.stops),
        eddy_names=tuple(p.owner for p in parts.eddies),
        curve_names=tuple(p.owner for p in parts.curves),
        variable_gear_names=tuple(p.owner for p in parts.variable_gears),
        thermal_names=net.names,
        derived_inputs=parts.derived_inputs,
        default_inputs=parts.default_inputs,
        parts=parts,
        topology=topology,
        starts=starts,
        notes=tuple(notes),
    )


def _check_output_names(parts: Parts) -> None:
    """Two outputs of one name: the second would be read for the first."""
    seen = {"energy.kinetic", "energy.potential"}
    for output in parts.outputs:
        if output.name in seen:
            raise CompileError(f"two outputs are called {output.name!r}: rename a component")
        seen.add(output.name)


def _order(driveline: Driveline, parts: Parts) -> int:
    """Order of the integrator: the one asked for, else 4 where something can oscillate."""
    if parts.variable_gears and driveline.order != 2:
        # two points drift off the ratio as it changes, and take the difference from the shafts
        return 4
    if isinstance(driveline.order, int):
        return driveline.order
    return 4 if parts.contacts or parts.bodies or any(p.c > 0.0 for p in parts.compliances) else 2


def _check_elements(parts: Parts, topology: Topology) -> None:
    """Clutches, springs and contacts whose two sides can never move against each other."""
    elements = [
        *((p.owner, p.form) for p in parts.frictions),
        *((p.owner, p.form) for p in parts.compliances),
        *((p.owner, p.form) for p in parts.contacts),
    ]
    for owner, form in elements:
        if not topology.over_independent(form)[0]:
            raise OverconstrainedError(
                f"both sides of {owner!r} always turn together (or stand still): it has no effect", [owner]
            )
    _check_forced(parts, topology)


def _check_forced(parts: Parts, topology: Topology) -> None:
    """Driven motions and variable gears must not determine the same motion twice, whatever the ratios are.

    Different primes stand for the ratios: they can then not cancel by chance.
    """
    owners: list[str] = []
    rows: list[Row] = []
    for part in parts.driven:
        owners.append(part.owner)
        rows.append(topology.over_independent(parts.frictions[part.friction].form)[0])
    for prime, gear in zip(_primes(len(parts.variable_gears)), parts.variable_gears, strict=True):
        a, b = (topology.over_independent(form)[0] for form in (gear.form_a, gear.form_b))
        if len(reduce([a, b], [Fraction(0)] * 2, topology.independent).pivots) < 2:
            raise OverconstrainedError(
                f"the speeds on the sides of {gear.owner!r} are tied to each other already", [gear.owner]
            )
        owners.append(gear.owner)
        rows.append(topology.over_independent(gear.form_a - prime * gear.form_b)[0])
    for _, made, _ in reduce(rows, [Fraction(0)] * len(rows), topology.independent).dependent:
        names = sorted({owners[k] for k in made}, key=natural)
        raise OverconstrainedError("the same motion is forced more than once: " + ", ".join(names), names)


def _primes(count: int) -> list[int]:
    """The first prime numbers from 101 on."""
    found: list[int] = []
    number = 101
    while len(found) < count:
        if all(number % k for k in range(2, int(number**0.5) + 1)):
            found.append(number)
        number += 2
    return found


def _reduced_inertia(topology: Topology, parts: Parts) -> np.ndarray:
    """M = sum over bodies of J * row^T * row, summed exactly, then rounded once."""
    position = {name: k for k, name in enumerate(topology.independent)}
    n = len(position)
    total = [[Fraction(0)] * n for _ in range(n)]
    for part in parts.inertias:
        row, _ = topology.over_independent(part.form)
        for a, va in row.items():
            for b, vb in row.items():
                total[position[a]][position[b]] += Fraction(part.J) * va * vb
    M = np.array([[float(v) for v in line] for line in total], dtype=np.float64).reshape(n, n)
    heavy = [k for name, k in position.items() if name not in topology.relaxing]
    try:
        np.linalg.cholesky(M[np.ix_(heavy, heavy)])
    except np.linalg.LinAlgError:
        if parts.impossible and not (parts.frictions or parts.contacts):
            # such a body cannot be built, but its equations have a solution: reference cases have some
            return np.ascontiguousarray(M)
        if parts.impossible:
            raise NoInertiaError("no such body can be: " + "; ".join(parts.impossible)) from None
        raise NoInertiaError(
            "the reduced inertia is not positive definite in double precision: inertias too different in size ("
            + ", ".join(f"{p.owner}: {p.J:g}" for p in parts.inertias) + ")",
            [p.owner for p in parts.inertias],
        ) from None  # fmt: skip
    return np.ascontiguousarray(M)
