"""Parameters of components at run time: the driveline is compiled again, the running state goes on with the new model.

What may change is what leaves the structure alone: numbers of components and gains of tables. Ratios, tooth numbers,
words and curves point by point are not among them: they would make speeds jump or need another model. All of it
happens in the control thread; the tick exchanges two pointers and copies the state (tick_control.pxi).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from torqueloop.core.compile.compiler import CompiledModel, compile_driveline
from torqueloop.core.components import params_of
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import CompileError, ConfigError, closest
from torqueloop.core.describe.tables import Columns, Table, Table1D, Table2D
from torqueloop.core.describe.units import SYMBOLS
from torqueloop.core.simulate.offline import make_kernel
from torqueloop.cython_kernels.kernel.kernel import KernelModel, KernelState
from torqueloop.cython_kernels.model.structure import structure_signature
from torqueloop.hil.control.messages import RequestError
from torqueloop.hil.rig.resolve.plan import RigPlan

#: arrays of the kinematics: how every speed follows from the independent ones
_KINEMATICS = ("row_ptr", "row_idx", "row_val")


@dataclass(frozen=True)
class ParameterInfo:
    """One parameter as a client sees it; value in SI, as it is now."""

    name: str
    unit: str
    value: float
    allowed: str


@dataclass(frozen=True)
class Prepared:
    """A model ready to take over: all parameters that differ from the files, in SI."""

    values: dict[str, float]
    driveline: Driveline
    compiled: CompiledModel
    model: KernelModel
    state: KernelState
    #: factors of the momentum of the car (RigPlan.vehicle)
    gains: tuple[float, ...]


class Parameters:
    """The parameters of a rig's driveline: what there is, what was changed, and models for changes."""

    def __init__(self, plan: RigPlan, kernel: str) -> None:
        self._plan, self._kernel = plan, kernel
        #: changed so far: name -> value in SI
        self.values: dict[str, float] = {}
        self.driveline: Driveline = plan.driveline
        #: all parameters with their present values, by name
        self.current: dict[str, ParameterInfo] = self._read()
        self._state_bytes = 0

    def _read(self) -> dict[str, ParameterInfo]:
        found = []
        for name, component in self.driveline.components.items():
            for key, p in params_of(type(component)).items():
                value = getattr(component, key)
                if p.form == "number" and isinstance(value, float):
                    allowed = p.allowed() or "a finite number"
                    found.append(ParameterInfo(f"{name}.{key}", SYMBOLS[p.dimension], value, allowed))
        for name, table in self.driveline.tables.items():
            if isinstance(table, Table1D | Table2D):
                gain = self.values.get(f"table.{name}.gain", 1.0)
                found.append(ParameterInfo(f"table.{name}.gain", "1", gain, "> 0"))
        return {info.name: info for info in found}

    def prepare(self, changes: Mapping[str, float], whole: bool = False) -> Prepared:
        """A model with these changes added to those made before (whole: instead of them).

        RequestError, with the allowed range, for a name or value that is none, or a change of the structure.
        """
        values = dict(changes) if whole else {**self.values, **changes}
        line = copy.copy(self._plan.driveline)
        line.components, line.tables = dict(line.components), dict(line.tables)
        known = self.current
        for name, value in values.items():
            if name not in known:
                near = closest(name, known)
                raise RequestError("refused", f"no parameter {name!r}" + (f"; did you mean {near!r}?" if near else ""))
            if not math.isfinite(value):
                raise RequestError("not_finite", f"{name} = {value}, allowed: a finite number")
            owner, _, key = name.rpartition(".")
            try:
                if name.startswith("table.") and owner.removeprefix("table.") in line.tables:
                    table = owner.removeprefix("table.")
                    line.tables[table] = _scaled(self._plan.driveline.tables[table], name, value)
                else:
                    line.replace(owner, **{key: value})
            except ConfigError as error:
                raise RequestError("refused", f"{name} = {value:g}: {error}") from None
        try:
            compiled = compile_driveline(line)
        except (ConfigError, CompileError) as error:
            raise RequestError("refused", f"with {_text(values)} the driveline does not compile: {error}") from None
        self._check_structure(compiled, values)
        model = self._model(compiled)
        state = KernelState(model)
        if not self._state_bytes:
            self._state_bytes = len(KernelState(self._model(self._plan.compiled)).to_bytes())
        if len(state.to_bytes()) != self._state_bytes:
            raise RequestError("refused", f"{_text(values)} changes what the state of the driveline consists of")
        state.warm()
        state.touch()
        return Prepared(values, line, compiled, model, state, self._gains(line))

    def accept(self, prepared: Prepared) -> None:
        """The change is in effect."""
        self.values, self.driveline = dict(prepared.values), prepared.driveline
        self.current = self._read()

    def _model(self, compiled: CompiledModel) -> KernelModel:
        clock = self._plan.config.clock
        return make_kernel(compiled, clock.tick_s / clock.substeps, self._kernel)

    def _gains(self, line: Driveline) -> tuple[float, ...]:
        vehicle = self._plan.config.vehicle
        if vehicle is None:
            return ()
        return (float(getattr(line.components[vehicle.car], "m")),)  # noqa: B009

    def _check_structure(self, new: CompiledModel, values: Mapping[str, float]) -> None:
        old = self._plan.compiled
        same = (
            old.input_names == new.input_names
            and old.output_names == new.output_names
            and old.friction_names == new.friction_names
            and structure_signature(old.arrays) == structure_signature(new.arrays)
            and _shapes(old) == _shapes(new)
        )
        if not (same and all(np.array_equal(getattr(old.arrays, k), getattr(new.arrays, k)) for k in _KINEMATICS)):
            raise RequestError(
                "refused",
                f"{_text(values)} changes the structure of the driveline (ratios, speeds, elements); allowed at run "
                "time: values that leave it alone",
            )


def _shapes(model: CompiledModel) -> dict[str, tuple[int, ...]]:
    """Of everything but curves and maps, whose points may change in number."""
    return {key: np.shape(value) for key, value in model.arrays.items() if "tab" not in key}


def _text(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} = {value:g}" for name, value in values.items())


def _scaled(table: Table, name: str, gain: float) -> Table:
    if not gain > 0.0:
        raise RequestError("refused", f"{name} = {gain:g}; allowed: > 0")
    if isinstance(table, Table1D):
        return replace(table, y=tuple(gain * y for y in table.y))
    if isinstance(table, Columns):
        raise RequestError("refused", f"{name}: a table of several columns has no gain")
    return replace(table, z=tuple(tuple(gain * z for z in row) for row in table.z))
