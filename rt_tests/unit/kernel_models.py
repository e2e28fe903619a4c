"""Small models for the tests of the kernel, put together as arrays; and an independent solution to compare with.

A model is written row by row: a row is a speed (of a shaft, or the slip of a clutch) as a combination of the
independent speeds u, and force elements act along rows. Everything in SI units.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import solve_ivp

import torqueloop.configs
from torqueloop.core.describe.kernel_numbers import (
    ACTUATED,
    BLOCKED,
    CAPACITY,
    CAPPED,
    CONSTANT,
    FILL_TIME,
    FIRST_ORDER,
    NORMALIZED,
    NOTHING,
)
from torqueloop.cython_kernels.kernel.kernel import KernelModel, KernelState
from torqueloop.cython_kernels.model.model_arrays import ModelArrays, given
from torqueloop.cython_kernels.model.records import KINDS

Array = NDArray[np.float64]
#: inputs as a function of times (K,) -> (K, nin)
Inputs = Callable[[Array], Array]

CONFIGS = Path(torqueloop.configs.__file__).parent

#: what the directions of slip do, forward and backward
CLUTCH = {"fwd": CAPPED, "bwd": CAPPED}
FREE_WHEEL = {"fwd": NOTHING, "bwd": BLOCKED}
ONE_WAY = {"fwd": NOTHING, "bwd": CAPPED}
ONE_WAY_CLUTCH = {"fwd": CAPPED, "bwd": BLOCKED}


class Sketch:
    """A model in the making. Methods return the index of what they add; `arrays()` is what KernelModel takes."""

    def __init__(self, M: ArrayLike, u0: ArrayLike | None = None, nin: int = 0, order: int = 2) -> None:
        self.M = np.atleast_2d(np.asarray(M, dtype=np.float64))
        if self.M.shape[0] == 1 and self.M.shape[1] > 1:
            self.M = np.diag(self.M[0])
        self.n = len(self.M)
        self.u0 = np.zeros(self.n) if u0 is None else np.atleast_1d(np.asarray(u0, dtype=np.float64))
        self.z0 = np.zeros(self.n)
        self.nin, self.order = nin, order
        self.rows: list[tuple[dict[int, float], float]] = []
        self.curves: list[tuple[Array, Array, int]] = []
        self.maps: list[tuple[Array, Array, Array]] = []
        self.parts: dict[str, list[dict[str, Any]]] = {
            k: [] for k in ("lin", "tq", "poly", "eng", "tc", "fr", "act", "out")
        }
        for i in range(self.n):
            self.row({i: 1.0})  # row i is the independent speed i

    def row(self, entries: dict[int, float], offset: float = 0.0) -> int:
        self.rows.append((entries, offset))
        return len(self.rows) - 1

    def _add(self, part: str, **values: Any) -> int:
        self.parts[part].append(values)
        return len(self.parts[part]) - 1

    def torque(self, row: int, source: int = -1, gain: float = 1.0, const: float = 0.0) -> int:
        return self._add("tq", row=row, gain=gain, constant=const, input=source)

    def spring(self, row: int, c: float, d: float = 0.0, phi0: float = 0.0) -> int:
        return self._add("lin", row=row, c=c, d=d, phi0=phi0)

    def resistance(self, row: int, k0: float = 0.0, k1: float = 0.0, k2: float = 0.0, k3: float = 0.0) -> int:
        return self._add("poly", row=row, k=(k0, k1, k2, k3))

    def friction(
        self,
        row: int,
        source: int = -1,
        gain: float = 1.0,
        *,
        actuator: int = -1,
        force: bool = False,
        cgeo: float = 1.0,
        mu: int = -1,
        peak: float = 1.0,
        hold: float = 0.0,
        fwd: int = CAPPED,
        bwd: int = CAPPED,
    ) -> int:
        """Constant normal force `gain`; or gain*input `source` (force: the input is the capacity); or an actuator."""
        if actuator >= 0:
            src, idx = ACTUATED, actuator
        elif source >= 0:
            src, idx = (CAPACITY if force else NORMALIZED), source
        else:
            src, idx = CONSTANT, -1
        return self._add(
            "fr", row=row, src=src, src_idx=idx, gain=gain, cgeo=cgeo, mu=mu, peak=peak, fwd=fwd, bwd=bwd, hold=hold
        )

    def free_wheel(self, row: int) -> int:
        return self.friction(row, gain=0.0, **FREE_WHEEL)

    def actuator(
        self,
        source: int,
        *,
        fill: bool = False,
        area: float = 1.0,
        p_return: float = 0.0,
        tau_rise: float = 0.0,
        tau_fall: float = 0.0,
        t_fill: float = 0.0,
        t_empty: float = 0.0,
        p_max: float = 3e6,
        p0: float = 0.0,
    ) -> int:
        return self._add(
            "act",
            kind=FILL_TIME if fill else FIRST_ORDER,
            area=area,
            p_return=p_return,
            tau_rise=tau_rise,
            tau_fall=tau_fall,
            t_fill=t_fill,
            t_empty=t_empty,
            p_max=p_max,
            p0=p0,
            input=source,
        )

    def engine(
        self,
        row: int,
        pedal: int,
        *,
        wot: int = -1,
        drag: int = -1,
        chart: int = -1,
        w_idle: float = 0.0,
        kp: float = 0.0,
        ki: float = 0.0,
        tau_idle_max: float = 0.0,
    ) -> int:
        return self._add(
            "eng",
            row=row,
            pedal=pedal,
            wot=wot,
            drag=drag,
            map=chart,
            w_idle=w_idle,
            kp=kp,
            ki=ki,
            tau_idle_max=tau_idle_max,
        )

    def converter(self, pump: int, turbine: int, mp: int, mu: int, coast: int, coast_ratio: float = 1.0) -> int:
        return self._add("tc", row_p=pump, row_t=turbine, mp=mp, mu=mu, coast=coast, coast_ratio=coast_ratio)

    def curve(self, x: ArrayLike, y: ArrayLike, linear: bool = False) -> int:
        self.curves.append((np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64), int(linear)))
        return len(self.curves) - 1

    def chart(self, x: ArrayLike, y: ArrayLike, z: ArrayLike) -> int:
        self.maps.append((np.asarray(x, float), np.asarray(y, float), np.asarray(z, float)))
        return len(self.maps) - 1

    def output(self, kind: int, index: int, gain: float = 1.0) -> int:
        return self._add("out", kind=kind, idx=index, aux=0, gain=gain)

    def arrays(self) -> ModelArrays:
        curves: dict[str, Any] = {
            "tab1_ptr": np.cumsum([0, *(len(x) for x, _, _ in self.curves)]).astype(np.int32),
            "tab1_x": np.concatenate([np.zeros(0), *(x for x, _, _ in self.curves)]),
            "tab1_y": np.concatenate([np.zeros(0), *(y for _, y, _ in self.curves)]),
            "tab1_extrap": np.array([e for _, _, e in self.curves], dtype=np.int32),
            "tab2_nx": np.array([len(x) for x, _, _ in self.maps], dtype=np.int32),
            "tab2_ny": np.array([len(y) for _, y, _ in self.maps], dtype=np.int32),
        }
        for axis, name in enumerate("xyz"):
            curves[f"tab2_{name}"] = np.concatenate([np.zeros(0), *(m[axis].ravel() for m in self.maps)])
            sizes = [m[axis].size for m in self.maps]
            curves[f"tab2_{name}ptr"] = np.cumsum([0, *sizes])[: len(sizes)].astype(np.int32)
        elements = {}
        for kind, parts in self.parts.items():
            names = KINDS[kind].given.names
            elements[kind] = given(kind, **{name: [part[name] for part in parts] for name in names})
        return ModelArrays(
            M=self.M,
            u0=self.u0,
            z0=self.z0,
            row_ptr=np.cumsum([0, *(len(r) for r, _ in self.rows)]).astype(np.int32),
            row_idx=np.array([i for r, _ in self.rows for i in r], dtype=np.int32),
            row_val=np.array([v for r, _ in self.rows for v in r.values()], dtype=np.float64),
            row_off=np.array([off for _, off in self.rows]),
            **curves,
            nin=self.nin,
            n_hot=len(self.rows),
            order=self.order,
            elements=elements,
        )


def sampled(inputs: Inputs, t0: float, h: float, steps: int, jumps: Sequence[float] = ()) -> Array:
    """(K, 3, nin): inputs at start, middle and end of each step; a jump must be on the grid."""
    t = t0 + h * np.arange(steps + 1)
    for jump in jumps:
        nearest = int(np.argmin(np.abs(t - jump)))
        assert abs(t[nearest] - jump) < 1e-6 * h or not t[0] < jump < t[-1], "the jump is not on the grid"
    eps = 1e-6 * h if jumps else 0.0
    return np.stack([inputs(t[:-1] + eps), inputs(0.5 * (t[:-1] + t[1:])), inputs(t[1:] - eps)], axis=1)


class Run:
    """A model run from its start for T seconds with sampled inputs; speeds, angles and all outputs after every step."""

    def __init__(
        self,
        sketch: Sketch,
        T: float,
        inputs: Inputs | ArrayLike = (),
        h: float = 1e-3,
        jumps: Sequence[float] = (),
    ) -> None:
        extra = [sketch.output(kind, i) for kind in (0, 1) for i in range(sketch.n)]
        self.model = KernelModel(sketch.arrays(), h, "generic")
        self.state = KernelState(self.model)
        steps = round(T / h)
        self.t = h * np.arange(1, steps + 1)
        if callable(inputs):
            values = sampled(inputs, 0.0, h, steps, jumps)
        else:
            values = np.tile(np.asarray(inputs, dtype=np.float64), (steps, 1))
        self.out = np.zeros((steps, self.model.sizes["outputs"]))
        assert self.model.run(self.state, values, self.out) == steps and self.state.status == 0
        self.u, self.z = self.out[:, extra[0] : extra[0] + sketch.n], self.out[:, extra[0] + sketch.n :]
        log = self.model.mode_log(self.state)
        #: (time, element, mode) of every change
        self.log = [(float(r["time_s"]), int(r["element"]), int(r["mode"])) for r in log]

    def changes(self, element: int) -> list[tuple[float, int]]:
        """(time, mode) of one element after the start."""
        return [(t, mode) for t, e, mode in self.log if e == element and t > 0.0]


def imbalance(model: KernelModel, state: KernelState, kinetic0: float, potential0: float = 0.0) -> float:
    """What the energy books are off by, relative to the energy turned over."""
    e = state.energies
    work = sum(float(np.sum(e[k])) for k in ("torque", "poly", "engine", "pump", "turbine"))
    heat = float(np.sum(e["friction"]) + np.sum(e["damper"]))
    turned = kinetic0 + potential0 + heat + sum(float(np.abs(e[k]).sum()) for k in ("torque", "poly", "engine"))
    return abs(e["kinetic"] + e["potential"] - kinetic0 - potential0 + heat - work) / max(turned, 1e-30)


#: one phase of a solution between two events: y' = rhs(t, y), until `until` (t, y) falls through zero; None: to the end
Phase = tuple[Callable[[float, Array], Array], Callable[[float, Array], float] | None]


def piecewise(phases: Sequence[Phase], y0: ArrayLike, T: float, grid: Array) -> tuple[Array, list[float]]:
    """Solution at the times `grid` and the event times, phase by phase, by a variable-step integrator (DOP853)."""
    t, y = 0.0, np.asarray(y0, dtype=np.float64)
    found = np.zeros((len(grid), len(y)))
    times = []
    for rhs, until in phases:
        events = []
        if until is not None:

            def stop(t: float, y: Array, until: Callable[[float, Array], float] = until) -> float:
                return until(t, y)

            stop.terminal, stop.direction = True, -1.0  # type: ignore[attr-defined]
            events = [stop]
        solution = solve_ivp(
            rhs, (t, T), y, "DOP853", rtol=1e-13, atol=1e-13, max_step=T / 50, events=events or None, dense_output=True
        )
        end = float(solution.t[-1])
        inside = (grid >= t) & (grid <= end)
        found[inside] = solution.sol(grid[inside]).T
        t, y = end, solution.y[:, -1]
        if until is not None:
            assert end < T, "a phase of the reference did not end"
            times.append(end)
    return found, times


def observed_order(steps: Sequence[float], errors: Sequence[float]) -> float:
    """Slope of log(error) over log(h)."""
    return float(np.polyfit(np.log(steps), np.log(errors), 1)[0])
