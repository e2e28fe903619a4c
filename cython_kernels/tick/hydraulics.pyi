"""Types of hydraulics.pyx."""

from typing import Any

from numpy.typing import NDArray

from torqueloop.cython_kernels.tick.blocks import Blocks

UNIT_SIGNALS: tuple[tuple[str, str], ...]
SOLENOID_SIGNALS: tuple[tuple[str, str], ...]
COIL_SIGNALS: tuple[tuple[str, str], ...]
VALVE_SIGNALS: tuple[tuple[str, str], ...]
PATH_SIGNALS: tuple[tuple[str, str], ...]
CIRCUIT_SIGNALS: tuple[tuple[str, str], ...]

Curve = list[tuple[float, float]]

def signals_of(n_solenoid: int, n_valve: int, n_circuit: int, n_path: int = 0) -> int: ...

class Hydraulics(Blocks):
    @property
    def n_sig(self) -> int: ...
    def __init__(
        self, n_sig: int, first_slot: int, n_solenoid: int, n_valve: int, n_circuit: int, n_path: int = 0
    ) -> None: ...
    def set_unit(
        self,
        *,
        substeps: int,
        h: float,
        lam: float,
        speed: int,
        displacement: float,
        volumetric: float,
        mechanical: float,
        line_source: int,
        line_gain: float,
        line_offset: float,
        line_max: float,
        line_stiff: float,
        line_leak: float,
        temperature: int,
        flow: Curve,
    ) -> None: ...
    def set_solenoid(
        self, index: int, *, command: int, gain: float, offset: float, keep: float, half: float, map: Curve
    ) -> None: ...
    def set_valve(self, index: int, *, pilot: int, p_on: float, p_off: float, held_by: int = -1) -> None: ...
    def set_path(
        self, index: int, *, form: str, sources: list[tuple[int, float]], offset: float, valve: int
    ) -> None: ...
    def set_circuit(
        self,
        index: int,
        *,
        valve: int,
        sources: list[tuple[int, float, float]],
        spool: list[float] | None,
        k_in: float,
        k_out: float,
        leak: float,
        volume: Curve,
        stiff: float,
        speed: int,
        spin: float,
    ) -> None: ...
    def tick(self, sig: NDArray[Any]) -> None: ...
