"""Driveline -> CompiledModel: the constant arrays of the kernel, and all names.

Equations of the arrays (u: n independent speeds, z' = u; a row r gives w = r.u and phi = r.z + row_off):

    M*du/dt = sum over elements of (row of element)^T * (force along the row)
    M = N^T*J*N (reduced inertia, symmetric positive definite)

    lin_*   -(c*(phi - phi0) + d*w)                      tq_*    const + gain*input (tq_in = -1: none)
    poly_*  k0 + k1*w + k2*w^2 + k3*w*|w|                 eng_*   drag + pedal*(wot - drag), or map(w, pedal); idle PI
    tc_*    converter torques on pump and turbine rows    fr_*    dry friction, capacity cgeo*mu(|w|)*fn
    act_*   pressure -> piston force                      tab1_*, tab2_*  curves and maps     out_*  named outputs

Forces are positive along their row. The order of everything follows the sorted names, never the order of listing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from torqueloop.core.builder import Builder, Parts
from torqueloop.core.driveline import Driveline
from torqueloop.core.errors import (
    CompileError,
    ConfigError,
    NoInertiaError,
    OverconstrainedError,
    UnknownNameError,
    did_you_mean,
)
from torqueloop.core.initial import start_values
from torqueloop.core.packing import RowStore, TableStore, floats, ints
from torqueloop.core.signals import Signal
from torqueloop.core.topology import Topology, build, natural
from torqueloop.core.vocabulary import OUT_KINETIC, OUT_POTENTIAL, ROW_OUTPUTS, Form


@dataclass(frozen=True, eq=False)
class CompiledModel:
    """Constant arrays for the kernel and the names that go with them."""

    #: name of the driveline
    name: str
    #: the arrays, see the module's text; scalars n, nin, n_hot, order are ints
    arrays: Mapping[str, Any]
    #: names of the independent coordinates
    coordinates: tuple[str, ...]
    input_names: tuple[str, ...]
    input_units: tuple[str, ...]
    output_names: tuple[str, ...]
    output_units: tuple[str, ...]
    #: component names of the friction elements, in the order of the fr_ arrays; likewise the others
    friction_names: tuple[str, ...]
    actuator_names: tuple[str, ...]
    compliance_names: tuple[str, ...]
    torque_names: tuple[str, ...]
    poly_names: tuple[str, ...]
    engine_names: tuple[str, ...]
    converter_names: tuple[str, ...]
    #: signals that components give to their own inputs (input name -> signal)
    default_inputs: Mapping[str, Signal]
    #: what the components contributed, and the exact elimination: for analysis
    parts: Parts = field(repr=False)
    topology: Topology = field(repr=False)

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

    def digest(self) -> str:
        """SHA-256 over all arrays: equal models have equal digests."""
        state = hashlib.sha256()
        for key in sorted(self.arrays):
            value = np.asarray(self.arrays[key])
            state.update(f"{key}:{value.dtype.str}:{value.shape};".encode())
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
    return parts


def analyse(driveline: Driveline) -> tuple[Parts, Topology]:
    """Parts and exact elimination without asking for inertias: enough for ratios and statics."""
    parts = collect(driveline)
    try:
        return parts, build(driveline.components, driveline.connections, parts, need_inertia=False)
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
    topology = build(driveline.components, driveline.connections, parts)
    rows = RowStore(topology.independent)
    tables = TableStore()

    def hot(form: Form) -> int:
        return rows.add(*topology.over_independent(form))

    _check_elements(parts, topology)
    arrays: dict[str, Any] = {"n": len(topology.independent), "M": _reduced_inertia(topology, parts)}
    arrays |= _elements(parts, hot, tables)
    n_hot = len(rows.rows)
    arrays |= _outputs(parts, hot)
    arrays |= rows.arrays()
    arrays |= tables.arrays()
    u0, z0 = start_values(driveline, parts, topology)
    springs = any(p.c > 0.0 for p in parts.compliances)
    order = driveline.order if isinstance(driveline.order, int) else (4 if springs else 2)
    arrays |= {"u0": floats(u0), "z0": floats(z0), "n_hot": n_hot, "nin": len(parts.inputs), "order": order}
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
        default_inputs=parts.default_inputs,
        parts=parts,
        topology=topology,
    )


def _check_elements(parts: Parts, topology: Topology) -> None:
    """Clutches and springs whose two sides can never move against each other."""
    elements = [(p.owner, p.form) for p in parts.frictions] + [(p.owner, p.form) for p in parts.compliances]
    for owner, form in elements:
        if not topology.over_independent(form)[0]:
            raise OverconstrainedError(
                f"both sides of {owner!r} always turn together (or stand still): it has no effect", [owner]
            )


def _reduced_inertia(topology: Topology, parts: Parts) -> np.ndarray:
    """M = sum over bodies of J * row^T * row, summed exactly, then rounded once."""
    position = {name: k for k, name in enumerate(topology.independent)}
    n = len(position)
    total = [[Fraction(0)] * n for _ in range(n)]
    for part in parts.inertias:
        row, _ = topology.over_independent(Form({part.flange: 1}))
        for a, va in row.items():
            for b, vb in row.items():
                total[position[a]][position[b]] += Fraction(part.J) * va * vb
    M = np.array([[float(v) for v in line] for line in total], dtype=np.float64).reshape(n, n)
    if n == 0:
        raise CompileError("nothing can move: every shaft is fixed in the housing")
    try:
        np.linalg.cholesky(M)
    except np.linalg.LinAlgError:
        raise NoInertiaError(
            "the reduced inertia is not positive definite in double precision: inertias too different in size ("
            + ", ".join(f"{p.owner}: {p.J:g}" for p in parts.inertias) + ")",
            [p.owner for p in parts.inertias],
        ) from None  # fmt: skip
    return np.ascontiguousarray(M)


def _elements(parts: Parts, hot: Any, tables: TableStore) -> dict[str, Any]:
    """Arrays of all force elements."""
    lin, tq, poly = parts.compliances, parts.torques, parts.polynomials
    eng, tc, fr, act = parts.engines, parts.converters, parts.frictions, parts.actuators
    return {
        "fr_row": ints([hot(p.form) for p in fr]),
        "fr_src": ints([p.source for p in fr]),
        "fr_src_idx": ints([p.source_index for p in fr]),
        "fr_gain": floats([p.gain for p in fr]),
        "fr_cgeo": floats([p.cgeo for p in fr]),
        "fr_mu_tab": ints([tables.curve(p.mu) for p in fr]),
        "fr_peak": floats([p.peak for p in fr]),
        "fr_fwd": ints([p.forward for p in fr]),
        "fr_bwd": ints([p.backward for p in fr]),
        "fr_hold": floats([p.hold for p in fr]),
        "lin_row": ints([hot(p.form) for p in lin]),
        "lin_c": floats([p.c for p in lin]),
        "lin_d": floats([p.d for p in lin]),
        "lin_phi0": floats([p.phi0 for p in lin]),
        "tq_row": ints([hot(p.form) for p in tq]),
        "tq_in": ints([p.input for p in tq]),
        "tq_gain": floats([p.gain for p in tq]),
        "tq_const": floats([p.const for p in tq]),
        "poly_row": ints([hot(p.form) for p in poly]),
        **{f"poly_k{k}": floats([p.k[k] for p in poly]) for k in range(4)},
        "eng_row": ints([hot(p.form) for p in eng]),
        "eng_pedal_in": ints([p.pedal for p in eng]),
        "eng_wot_tab": ints([tables.curve(p.wot) for p in eng]),
        "eng_drag_tab": ints([tables.curve(p.drag) for p in eng]),
        "eng_map_tab2": ints([tables.map(p.map) for p in eng]),
        "eng_w_idle": floats([p.w_idle for p in eng]),
        "eng_kp": floats([p.kp for p in eng]),
        "eng_ki": floats([p.ki for p in eng]),
        "eng_tau_idle_max": floats([p.tau_idle_max for p in eng]),
        "tc_row_p": ints([hot(p.pump) for p in tc]),
        "tc_row_t": ints([hot(p.turbine) for p in tc]),
        "tc_mp_tab": ints([tables.curve(p.mp) for p in tc]),
        "tc_mu_tab": ints([tables.curve(p.mu) for p in tc]),
        "tc_coast_tab": ints([tables.curve(p.coast) for p in tc]),
        "tc_coast_ratio": floats([p.coast_ratio for p in tc]),
        "act_in": ints([p.input for p in act]),
        "act_kind": ints([p.kind for p in act]),
        **{
            f"act_{name}": floats([getattr(p, name) for p in act])
            for name in ("area", "p_return", "tau_rise", "tau_fall", "t_fill", "t_empty", "p_max")
        },
    }


def _outputs(parts: Parts, row: Any) -> dict[str, Any]:
    """Arrays of the outputs; the two energies of the whole come last."""
    kinds, indices, gains = [], [], []
    for output in parts.outputs:
        kinds.append(output.kind)
        if output.kind in ROW_OUTPUTS:
            assert output.form is not None
            indices.append(row(output.form))
        else:
            indices.append(output.index)
        gains.append(output.gain)
    kinds += [OUT_KINETIC, OUT_POTENTIAL]
    indices += [0, 0]
    gains += [1.0, 1.0]
    return {
        "out_kind": ints(kinds),
        "out_idx": ints(indices),
        "out_gain": floats(gains),
        "out_off": floats([0.0] * len(kinds)),
    }
