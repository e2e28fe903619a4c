"""A small 4HP22 car for the tests of the TCU: 4 speeds, rigid shafts, boxed friction by Gauss-Seidel; simple:
it shares no code with the product's kernel, so a TCU tuned on one and run on the other shows whether it is tuned to
an artefact.

    u = (w_in, w_S12, w_X, w_S3);  R1 = (108 X - 35 S12)/73;  CR2 = (35 S12 + 73 X)/108;  out = (114 X - 31 S3)/83
    M u' = torques;  friction impulse of each element clamped to h * capacity, one-way elements to one side
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
RPM = np.pi / 30.0
SHAFTS = {
    "in": np.array([1.0, 0, 0, 0]),
    "S12": np.array([0, 1.0, 0, 0]),
    "X": np.array([0, 0, 1.0, 0]),
    "S3": np.array([0, 0, 0, 1.0]),
    "R1": np.array([0, -35 / 73, 108 / 73, 0]),
    "CR2": np.array([0, 35 / 108, 73 / 108, 0]),
    "out": np.array([0, 0, 114 / 83, -31 / 83]),
}
INERTIA = {"in": 0.056, "S12": 0.012, "X": 0.015, "S3": 0.004, "R1": 0.006, "CR2": 0.008}
#: element -> (row of the relative speed w, capacity per bar [Nm] or inf, one-way: blocks only w < 0)
S = SHAFTS
ELEMENTS = {
    "C4": (S["in"] - S["R1"], 69.0, False),
    "C5": (S["in"] - S["S12"], 69.0, False),
    "C6": (S["S12"], 34.6, False),
    "C7": (S["S12"], 34.6, True),
    "C8": (S["CR2"], 242.0, False),
    "C11": (S["X"] - S["S3"], 75.4, False),
    "C12": (S["S3"], 30.8, False),
    "F14": (S["X"] - S["S3"], np.inf, True),
    "F15": (S["CR2"], np.inf, True),
}
NAMES = list(ELEMENTS)
PRESSED = NAMES[:7]


def _columns(path: Path, *names: str) -> list[np.ndarray]:
    with path.open() as stream:
        rows = list(csv.DictReader(line for line in stream if not line.startswith("#")))
    return [np.array([float(row[name]) for row in rows]) for name in names]


class Plant:
    """Car with engine, converter, gearbox. `step(pressures_bar, lockup_bar, pedal, brake)` advances 1 ms."""

    h = 1e-3

    def __init__(self, mass_kg: float = 1500.0, speed_mps: float = 0.0) -> None:
        self.to_road = 0.306 / 3.25
        inertia = {**INERTIA, "out": 0.012 + 3.2 / 3.25**2 + mass_kg * self.to_road**2}
        self.mass_matrix = sum(j * np.outer(S[name], S[name]) for name, j in inertia.items())
        self.inverse = np.linalg.inv(self.mass_matrix)
        self.rows = np.array([ELEMENTS[name][0] for name in NAMES])
        self.response = self.rows @ self.inverse
        self.delassus = self.response @ self.rows.T
        self.mass_kg = mass_kg
        w_out = speed_mps / self.to_road
        self.u = np.array([w_out, w_out, w_out, w_out])
        self.w_engine = max(80.0, w_out)
        self.piston_bar = np.zeros(7)
        self.lockup_bar = 0.0
        self.impulse = np.zeros(len(NAMES))
        self.nu, self.capacity, self.ratio = _columns(
            CONFIGS / "converters/tc_4hp22.csv", "speed_ratio", "pump_capacity_Nms2_per_rad2", "torque_ratio"
        )
        self.x, self.coast = _columns(
            CONFIGS / "converters/tc_4hp22_coast.csv", "speed_ratio_p_over_t", "turbine_capacity_Nms2_per_rad2"
        )
        self.w_tab, self.wot, self.closed = _columns(
            CONFIGS / "engines/bmw_m30b28.csv", "speed_radps", "wot_Nm", "closed_throttle_Nm"
        )
        self.turbine_torque = 0.0
        self.acceleration = 0.0
        self.t = 0.0

    def speed_of(self, shaft: str) -> float:
        return float(SHAFTS[shaft] @ self.u)

    @property
    def speed_mps(self) -> float:
        return self.speed_of("out") * self.to_road

    def torque_of(self, element: str) -> float:
        """Torque of the element that opposes its relative speed w in the last step [Nm]."""
        return float(self.impulse[NAMES.index(element)] / self.h)

    def step(self, pressures_bar: dict[str, float], lockup_bar: float, pedal: float, brake: float = 0.0) -> None:
        h = self.h
        for i, name in enumerate(PRESSED):
            command = pressures_bar[name]
            tau = 0.04 if command > self.piston_bar[i] else 0.03
            self.piston_bar[i] += h / tau * (command - self.piston_bar[i])
        self.lockup_bar += h / (0.06 if lockup_bar > self.lockup_bar else 0.04) * (lockup_bar - self.lockup_bar)
        pump, turbine = self._converter()
        lock = self._lockup(pump, turbine)
        drag = np.interp(self.w_engine, self.w_tab, self.closed)
        engine = drag + pedal * (np.interp(self.w_engine, self.w_tab, self.wot) - drag)
        engine += min(60.0, max(0.0, 8.0 * (80.0 - self.w_engine)))
        self.w_engine += h / 0.28 * (engine - pump - lock)
        v = self.speed_mps
        road = 176.6 * np.tanh(v / 0.02) + 0.453 * v * abs(v) + brake * 14700.0 * np.tanh(v / 0.02)
        force = (turbine + lock) * S["in"] - road * self.to_road * S["out"]
        self.turbine_torque = turbine + lock
        self._friction(h * force)
        self.acceleration = (self.speed_mps - v) / h
        self.t += h

    def _converter(self) -> tuple[float, float]:
        w_p, w_t = self.w_engine, max(self.u[0], 0.0)
        if w_t <= w_p:
            nu = w_t / w_p
            pump = np.interp(nu, self.nu, self.capacity) * w_p**2
            return pump, np.interp(nu, self.nu, self.ratio) * pump
        turbine = -np.interp(w_p / w_t, self.x, self.coast) * w_t**2
        return 0.987 * turbine, turbine

    def _lockup(self, pump: float, turbine: float) -> float:
        capacity = 34.7 * max(0.0, self.lockup_bar - 0.3)
        return capacity * np.tanh((self.w_engine - self.u[0]) / 1.0)

    def _friction(self, push: np.ndarray) -> None:
        high = np.empty(len(NAMES))
        for i, name in enumerate(NAMES):
            per_bar = ELEMENTS[name][1]
            high[i] = np.inf if np.isinf(per_bar) else self.h * per_bar * max(0.0, self.piston_bar[i] - 0.8)
        low = -high
        high = np.array([0.0 if ELEMENTS[name][2] else high[i] for i, name in enumerate(NAMES)])
        free = self.rows @ (self.u + self.inverse @ push)
        lam = np.clip(self.impulse, low, high)
        d = self.delassus
        w = free - d @ lam
        for _ in range(60):
            change = 0.0
            for i in range(len(NAMES)):
                new = min(max(lam[i] + w[i] / d[i, i], low[i]), high[i])
                delta = new - lam[i]
                if delta != 0.0:
                    lam[i] = new
                    w -= d[:, i] * delta
                    change = max(change, abs(delta))
            if change < 1e-9:
                break
        self.impulse = lam
        self.u = self.u + self.inverse @ (push - self.rows.T @ lam)
