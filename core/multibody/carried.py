"""A compiled 1-D driveline carried by a body: rotors about axes of it, springs, dampers, torques, dry friction.

Its speeds are relative to the body. A rotor of inertia J about n, ω the angular velocity of the body
(along its axes):

    on the driveline   J (dw/dt + n·dω/dt)
    on the body        -(J n dw/dt + ω x J n w)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np

from torqueloop.core.compile.compiler import CompiledModel
from torqueloop.core.compile.topology import Row as Terms
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import CompileError, UnknownNameError, did_you_mean
from torqueloop.core.describe.vocabulary import Form
from torqueloop.core.multibody.friction import Friction, read_friction
from torqueloop.core.multibody.tree import Floats, Vector, unit
from torqueloop.core.signals import Signal

#: records of a compiled driveline that are followed here; "re" and "out" are outputs
FOLLOWED = {"lin", "tq", "fr", "re", "out"}


def at(signal: Signal, t: float, before: bool) -> float:
    """Its value; `before`: the limit from the left, for the end of a step."""
    return signal.before(t) if before else signal.value(t)


@dataclass(frozen=True, eq=False)
class Rotor:
    """An inertia of the driveline: J, kg m2; axis on its body; w = row . u."""

    name: str
    J: float
    axis: Floats
    row: Floats


@dataclass(frozen=True, eq=False)
class Carried:
    """A driveline on a body. CompileError: one that is no rotor, ideal gear, spring, damper, torque or friction."""

    name: str
    model: CompiledModel
    #: name of the body
    body: str
    #: axis of every inertia, or of each by its name
    axes: Vector | Mapping[str, Vector]
    #: every input of the driveline
    inputs: Mapping[str, Signal] = field(default_factory=dict)
    rotors: tuple[Rotor, ...] = field(init=False)
    #: (elements, n) rows of springs and torques
    spring_rows: Floats = field(init=False)
    torque_rows: Floats = field(init=False)
    frictions: tuple[Friction, ...] = field(init=False)

    def __post_init__(self) -> None:
        self._refuse_others()
        for name in self.inputs:
            self.model.input_index(name)
        missing = [name for name in self.model.input_names if name not in self.inputs]
        if missing:
            raise CompileError(f"driveline {self.name!r}: no signal for its inputs {', '.join(missing)}")
        put = object.__setattr__  # a frozen dataclass completes itself once
        put(self, "rotors", self._rotors())
        put(self, "spring_rows", self._rows("lin"))
        put(self, "torque_rows", self._rows("tq"))
        put(self, "frictions", read_friction(self.model, self.name))

    def _refuse_others(self) -> None:
        for kind, value in self.model.arrays.items():
            if isinstance(value, np.ndarray) and value.dtype.names and value.size and kind not in FOLLOWED:
                raise CompileError(
                    f"driveline {self.name!r} has {len(value)} elements of kind {kind!r} (docs/kernel_records.md), "
                    "which a tree of bodies cannot carry; inertias, ideal gears, springs, dampers, torques, clutches "
                    "and brakes can be"
                )

    def _rotors(self) -> tuple[Rotor, ...]:
        parts = self.model.parts.inertias
        known = [part.owner for part in parts]
        named = self.axes if isinstance(self.axes, Mapping) else dict.fromkeys(known, self.axes)
        for name in named:
            if name not in known:
                raise UnknownNameError(f"driveline {self.name!r}: axes name {name!r}, which is no inertia of it",
                                       hint=did_you_mean(name, known))  # fmt: skip
        rotors = []
        for part in parts:
            if part.owner not in named:
                raise CompileError(f"driveline {self.name!r}: no axis for its inertia {part.owner!r}")
            if any(self.model.topology.domain.get(n) != "rotational" for n in self._terms(part.form)):
                raise CompileError(
                    f"driveline {self.name!r}: {part.owner!r} moves along: masses are bodies of the tree"
                )
            axis = unit(named[part.owner], self.name, f"axes.{part.owner}")
            rotors.append(Rotor(part.owner, float(part.J), axis, self._dense(self._terms(part.form))))
        return tuple(rotors)

    def _terms(self, form: Form) -> Terms:
        return self.model.topology.over_independent(form)[0]

    def _dense(self, terms: Terms) -> Floats:
        row = np.zeros(self.model.n)
        for name, value in terms.items():
            row[self.model.coordinates.index(name)] = float(value)
        return row

    def flange(self, name: str, what: str) -> Floats:
        """Row of a flange's speed over the coordinates; UnknownNameError names `what` asked for it."""
        place = self.model.topology.place
        if name not in place:
            raise UnknownNameError(f"{what}: driveline {self.name!r} has no joined flange {name!r}",
                                   hint=did_you_mean(name, place))  # fmt: skip
        return self._dense(self._terms(Form({name: 1})))

    def _rows(self, kind: str) -> Floats:
        arrays = self.model.arrays
        elements = getattr(arrays, kind)
        rows = np.zeros((len(elements), self.model.n))
        for k, r in enumerate(elements["row"]):
            part = slice(arrays.row_ptr[r], arrays.row_ptr[r + 1])
            rows[k, arrays.row_idx[part]] = arrays.row_val[part]
        return rows

    def stretch(self, z: Floats) -> Floats:
        """Angles of the springs from where they are without force."""
        springs = self.model.arrays.lin
        offsets = self.model.arrays.row_off[springs["row"]]
        return np.asarray(self.spring_rows @ z + offsets - springs["phi0"])

    def given(self, t: float, before: bool = False) -> Floats:
        """Values of the inputs."""
        return np.array([at(self.inputs[name], t, before) for name in self.model.input_names])

    def torques(self, t: float, before: bool = False) -> Floats:
        """Torques of the sources, each along its row; `before`: their limits from the left."""
        sources = self.model.arrays.tq
        values = self.given(t, before)
        commands = np.array([values[i] if i >= 0 else 0.0 for i in sources["input"]])
        return np.asarray(sources["constant"] + sources["gain"] * commands)

    def force(self, t: float, z: Floats, u: Floats, before: bool = False) -> Floats:
        """Generalized forces on the coordinates."""
        springs = self.model.arrays.lin
        tau = springs["c"] * self.stretch(z) + springs["d"] * (self.spring_rows @ u)
        return np.asarray(self.torque_rows.T @ self.torques(t, before) - self.spring_rows.T @ tau)

    def powers(self, t: float, u: Floats, before: bool = False) -> tuple[float, float]:
        """Power of the sources and loss of the dampers, W."""
        slip = self.spring_rows @ u
        return float(self.torques(t, before) @ (self.torque_rows @ u)), float(self.model.arrays.lin["d"] @ slip**2)

    def spring_energy(self, z: Floats) -> float:
        """J in the springs."""
        return float(0.5 * self.model.arrays.lin["c"] @ self.stretch(z) ** 2)
