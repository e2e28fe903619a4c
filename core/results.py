"""What a simulation leaves: signals over time, mode changes, and the energy balance."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.compiler import CompiledModel
from torqueloop.core.errors import UnknownNameError, did_you_mean
from torqueloop.core.vocabulary import (
    OUT_CONVERTER_LOSS,
    OUT_DISSIPATION,
    OUT_ENGINE_WORK,
    OUT_FRICTION_HEAT,
    OUT_KINETIC,
    OUT_POLY_WORK,
    OUT_POTENTIAL,
    OUT_TORQUE_WORK,
)

Array = NDArray[np.float64]
#: outputs whose increase is work put into the driveline (negative: taken out)
WORK = (OUT_TORQUE_WORK, OUT_POLY_WORK, OUT_ENGINE_WORK)
#: outputs whose increase is energy turned into heat
HEAT = (OUT_FRICTION_HEAT, OUT_DISSIPATION, OUT_CONVERTER_LOSS)
STORED = (OUT_KINETIC, OUT_POTENTIAL)


@dataclass(frozen=True)
class ModeChange:
    """A friction element changed its mode: -1 backward, 0 stuck, 1 forward, 2 free."""

    step: int
    time_s: float
    element: str
    mode: int


@dataclass(frozen=True)
class EnergyBalance:
    """Energy from the first to the last sample, J: work = stored + heat + residual."""

    #: work of each source into the driveline
    work: Mapping[str, float]
    #: heat of each friction element, damper and converter
    heat: Mapping[str, float]
    #: change of kinetic and potential energy
    stored: Mapping[str, float]
    #: what does not close
    residual: float
    #: all energy that was put in, or released from the shafts
    turned_over: float

    @property
    def relative_residual(self) -> float:
        """|residual| as a part of the energy turned over."""
        return abs(self.residual) / self.turned_over if self.turned_over > 0.0 else abs(self.residual)


class Result:
    """Signals of a run; result["engine.w"] is an array in SI, one value per sample of `time`."""

    def __init__(
        self, model: CompiledModel, time: Array, values: Array, modes: list[ModeChange], counters: Mapping[str, int]
    ) -> None:
        #: the model that ran
        self.model = model
        #: sample times, s; the first is the start
        self.time = time
        #: samples x outputs; forces and accelerations of the first sample are 0 (no step has been made yet)
        self.values = values
        #: mode changes in order
        self.modes = modes
        #: work of the solver: events, splits, fallbacks ...
        self.counters = dict(counters)
        self._column = {name: k for k, name in enumerate(model.output_names)}

    @property
    def names(self) -> tuple[str, ...]:
        """All output names."""
        return self.model.output_names

    @property
    def units(self) -> dict[str, str]:
        """Output name -> SI unit."""
        return dict(zip(self.model.output_names, self.model.output_units, strict=True))

    def __len__(self) -> int:
        return len(self.time)

    def __contains__(self, name: object) -> bool:
        return name in self._column

    def __getitem__(self, name: str) -> Array:
        try:
            return self.values[:, self._column[name]]
        except KeyError:
            hint = did_you_mean(name, self._column)
            raise UnknownNameError(f"there is no output {name!r}", hint=hint) from None

    def energy(self) -> EnergyBalance:
        """Where the energy of the run went."""
        change = self.values[-1] - self.values[0]
        found: dict[int, dict[str, float]] = {kind: {} for kind in (*WORK, *HEAT, *STORED)}
        for name, kind, gain, delta in zip(
            self.names, self.model.arrays["out_kind"], self.model.arrays["out_gain"], change, strict=True
        ):
            if int(kind) in found:
                found[int(kind)][name] = float(delta) / float(gain)
        work = {name: v for kind in WORK for name, v in found[kind].items()}
        heat = {name: v for kind in HEAT for name, v in found[kind].items()}
        stored = {name: v for kind in STORED for name, v in found[kind].items()}
        gained = sum(stored.values())
        residual = sum(work.values()) - sum(heat.values()) - gained
        turned = sum(v for v in work.values() if v > 0.0) + max(0.0, -gained)
        return EnergyBalance(work, heat, stored, residual, turned)

    def write_csv(self, path: str | Path, names: Iterable[str] | None = None) -> None:
        """Samples as CSV: time and the named outputs (default: all), full precision, units in a second header line."""
        chosen = list(self.names if names is None else names)
        columns = [self.time, *(self[name] for name in chosen)]
        units = self.units
        with Path(path).open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(["time", *chosen])
            writer.writerow(["s", *(units[name] for name in chosen)])
            writer.writerows([repr(float(v)) for v in row] for row in zip(*columns, strict=True))

    def __repr__(self) -> str:
        span = f"{self.time[0]:g} .. {self.time[-1]:g} s" if len(self.time) else "empty"
        return f"Result({self.model.name!r}, {len(self.time)} samples, {span}, {len(self.names)} outputs)"
