"""What a simulation leaves: signals over time, mode changes, and the energy balance."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from torqueloop.core.compile.compiler import CompiledModel
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import UnknownNameError, did_you_mean
from torqueloop.core.describe.kernel_numbers import (
    OUT_CONTACT_LOSS,
    OUT_CONVERTER_LOSS,
    OUT_DISSIPATION,
    OUT_ENGINE_WORK,
    OUT_FRICTION_HEAT,
    OUT_JOINT,
    OUT_KINETIC,
    OUT_POLY_WORK,
    OUT_PORT_WORK,
    OUT_POTENTIAL,
    OUT_TORQUE_WORK,
)
from torqueloop.core.describe.naming import cell
from torqueloop.core.describe.parts import Compliance, ContactPart, FrictionPart, port_number
from torqueloop.core.describe.vocabulary import JOINT_HEAT, JOINT_OUTPUTS, JOINT_WORK
from torqueloop.core.simulate.remarks import FAULTS, Remark
from torqueloop.core.simulate.run import Array, Run

#: outputs whose increase is work put into the driveline (negative: taken out)
WORK = (OUT_TORQUE_WORK, OUT_POLY_WORK, OUT_ENGINE_WORK, OUT_PORT_WORK, OUT_JOINT)
#: outputs whose increase is energy turned into heat
HEAT = (OUT_FRICTION_HEAT, OUT_DISSIPATION, OUT_CONTACT_LOSS, OUT_CONVERTER_LOSS)
STORED = (OUT_KINETIC, OUT_POTENTIAL)


@dataclass(frozen=True)
class ModeChange:
    """A friction element changed its mode: -1 backward, 0 stuck, 1 forward, 2 free."""

    step: int
    time_s: float
    element: str
    mode: int


@dataclass(frozen=True)
class Start:
    """What a simulation has counted up to an instant."""

    #: steps since 0
    place: float
    counters: Mapping[str, int]
    #: kind of output -> J of each friction element, damper, contact
    heat: Mapping[int, Array]


@dataclass(frozen=True)
class EnergyBalance:
    """Energy from the first to the last sample, J: work = stored + heat + residual."""

    #: work of each source into the driveline
    work: Mapping[str, float]
    #: heat of each friction element, damper, contact, converter, and of impacts in gears of changing ratio
    heat: Mapping[str, float]
    #: change of kinetic and potential energy
    stored: Mapping[str, float]
    #: what does not close
    residual: float
    #: all energy there was: kinetic and potential at the start, or at its largest, and what sources have put in
    turned_over: float
    #: of `heat`, elements that show none among their outputs
    unshown: tuple[str, ...] = ()

    @property
    def relative_residual(self) -> float:
        """|residual| as a part of the energy turned over."""
        return abs(self.residual) / self.turned_over if self.turned_over > 0.0 else abs(self.residual)


class Result(Run):
    """Signals of a simulation; result["engine.w"] is an array in SI, one value per sample of `t`."""

    def __init__(
        self, model: CompiledModel, time: Array, values: Array, modes: list[ModeChange], counters: Mapping[str, int],
        dissipated: Mapping[int, Array] | None = None, remarks: Sequence[Remark] = (),
    ) -> None:  # fmt: skip
        #: the model that ran
        self.model = model
        #: sample times, s; the first is the start
        self.time = time
        #: samples x outputs; forces and accelerations of the first sample are 0 (no step has been made yet)
        self.values = values
        #: mode changes in order
        self.modes = modes
        #: work of the solver: events, splits, fallbacks ...
        self.counters: dict[str, int] = dict(counters)
        #: what the steps did not resolve, one line each with its remedy
        self.remarks: tuple[Remark, ...] = tuple(remarks)
        #: heat of the run by the kernel: kind of output -> J of each friction element, damper, contact
        self._dissipated = dict(dissipated or {})
        self._column = {name: k for k, name in enumerate(model.output_names)}

    @property
    def faults(self) -> tuple[Remark, ...]:
        """The remarks that make the run one not to be relied on: steps not solved, energy that does not close."""
        return tuple(remark for remark in self.remarks if remark.kind in FAULTS)

    @property
    def names(self) -> tuple[str, ...]:
        """All output names."""
        return self.model.output_names

    @property
    def units(self) -> dict[str, str]:
        """Output name -> SI unit."""
        return dict(zip(self.model.output_names, self.model.output_units, strict=True))

    def __len__(self) -> int:
        """Number of samples."""
        return len(self.time)

    @property
    def t(self) -> Array:
        """Simulated time of the samples [s]; the first is the start."""
        return self.time

    def signal(self, name: str) -> Array:
        """The samples of one output, SI. UnknownNameError when there is none of this name."""
        try:
            return self.values[:, self._column[name]]
        except KeyError:
            hint = did_you_mean(name, self._column)
            raise UnknownNameError(f"there is no output {name!r}", hint=hint) from None

    def energy(self) -> EnergyBalance:
        """Where the energy of the run went."""
        change = self.values[-1] - self.values[0]
        work: dict[str, float] = {}
        heat: dict[str, float] = {}
        stored: dict[str, float] = {}
        arrays = self.model.arrays
        seen: set[tuple[int, int]] = set()
        for name, number, index, gain, delta in zip(
            self.names, arrays.out["kind"], arrays.out["idx"], arrays.out["gain"], change, strict=True
        ):
            kind, element = self._book(int(number), int(index))
            if (kind, element) in seen:
                continue
            seen.add((kind, element))
            value = float(delta) / float(gain)
            if kind in WORK:
                # what forces a motion is a friction element to the kernel, its "heat" minus the work of the drive
                work[name] = -value if int(number) == OUT_FRICTION_HEAT else value
            elif kind in HEAT:
                heat[name] = value
            elif kind in STORED:
                stored[name] = value
        unshown = self._unshown(seen)
        heat |= unshown
        residual = sum(work.values()) - sum(heat.values()) - sum(stored.values())
        total = sum((self[name] for name in stored), np.zeros(len(self.time)))
        turned = max(sum(v for v in work.values() if v > 0.0) + float(total[0]), float(total.max()))
        return EnergyBalance(work, heat, stored, residual, turned, tuple(unshown))

    def _unshown(self, seen: set[tuple[int, int]]) -> dict[str, float]:
        """Heat of elements that have no output for it, by the name of the component: `NAME (no output)`."""
        parts = self.model.parts
        owners: dict[int, Sequence[FrictionPart | Compliance | ContactPart]] = {
            OUT_FRICTION_HEAT: parts.frictions, OUT_DISSIPATION: parts.compliances, OUT_CONTACT_LOSS: parts.contacts,
        }  # fmt: skip
        joints = {p.lin: -1 - k * JOINT_OUTPUTS - JOINT_HEAT for k, p in enumerate(parts.joints.shafts)}
        found: dict[str, float] = {}
        for kind, heats in self._dissipated.items():
            for index, heat in enumerate(heats):
                shown = joints.get(index, index) if kind == OUT_DISSIPATION else index
                if heat != 0.0 and (kind, shown) not in seen:
                    name = f"{owners[kind][index].owner} (no output)"
                    found[name] = found.get(name, 0.0) + float(heat)
        return found

    def _book(self, kind: int, index: int) -> tuple[int, int]:
        """The account of an output, so that nothing is counted twice under two names; kind -1: none.

        Works go by the number of their port. What pump and turbine do is in the loss of their converter. What forces a
        motion does work; a gear of changing ratio turns energy into heat in impacts, when its ratio jumps.
        """
        parts = self.model.parts
        starts = {OUT_TORQUE_WORK: "torque", OUT_POLY_WORK: "polynomial", OUT_ENGINE_WORK: "engine"}
        if kind in starts:
            return OUT_PORT_WORK, port_number(parts, starts[kind], index)
        if kind == OUT_PORT_WORK:
            converters = range(port_number(parts, "pump", 0), port_number(parts, "eddy", 0))
            return (-1 if index in converters else kind), index
        if kind == OUT_JOINT:
            which = index % JOINT_OUTPUTS
            return {JOINT_HEAT: OUT_DISSIPATION, JOINT_WORK: OUT_JOINT}.get(which, -1), -1 - index
        if kind == OUT_FRICTION_HEAT and index in {p.friction for p in parts.driven}:
            return OUT_PORT_WORK, -1 - index
        return kind, index

    def write_csv(self, path: str | Path, names: Iterable[str] | None = None) -> None:
        """Samples as CSV: time and the named outputs (default: all), full precision, units in a second header line."""
        chosen = list(self.names if names is None else names)
        columns = [self.time, *(self[name] for name in chosen)]
        units = self.units
        with Path(path).open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(["time", *map(cell, chosen)])
            writer.writerow(["s", *(units[name] for name in chosen)])
            writer.writerows([repr(float(v)) for v in row] for row in zip(*columns, strict=True))

    def __repr__(self) -> str:
        span = f"{self.time[0]:g} .. {self.time[-1]:g} s" if len(self.time) else "empty"
        return f"Result({self.model.name!r}, {len(self.time)} samples, {span}, {len(self.names)} outputs)"
