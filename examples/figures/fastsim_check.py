"""FASTSim 2.1.5 (NREL, Apache-2.0) as an independent check of drive cycles: a matching car, its own environment.

FASTSim has no speeds inside the driveline: power at the wheels, one efficiency of the whole driveline, efficiency of
the engine over its output power, 1 s steps. It pins old versions of libraries, so it gets an environment of its own:

    python -m venv build/fastsim && build/fastsim/bin/pip install fastsim==2.1.5
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from torqueloop.core.analyse.fuel import PETROL_LHV
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]
#: power fractions of FASTSim's efficiency curve
FRACTIONS = (0.0, 0.005, 0.015, 0.04, 0.06, 0.10, 0.14, 0.20, 0.40, 0.60, 0.80, 1.00)
GRAVITY = 9.81


@dataclass(frozen=True)
class Car:
    """What FASTSim is told of a car."""

    mass_kg: float
    #: rolling resistance coefficient, and c_d times area [m2], of F = f0 + f1 v + f2 v^2
    rolling: float
    cdA_m2: float
    wheel_inertia_kgm2: float
    wheel_radius_m: float
    engine_kW: float
    #: efficiency of the engine at FRACTIONS of its power
    efficiency: tuple[float, ...]
    #: of converter, gearbox, axle together
    driveline: float
    #: power the engine gives while the car stands
    standing_kW: float

    @classmethod
    def of(cls, line: Driveline, driven: Any) -> Car:
        """The car of a driveline; what FASTSim cannot have (speeds of the engine, slip of the converter) as means of a
        warm run: efficiency over power, and work at the wheels per work of the engine."""
        c, wheel = line.components["car"], line.components["wheel"]
        v = driven.run.result["car.v"]
        moving = v[v > 1.0]
        # f1 v is shared out to a constant and a square by least squares over the speeds of the cycle
        share, *_ = np.linalg.lstsq(np.column_stack([np.ones_like(moving), moving**2]), moving, rcond=None)
        f0, f2 = c.f0 + c.f1 * share[0], c.f2 + c.f1 * share[1]
        engine_kW = 95.0
        efficiency, standing = driveline_efficiency(driven)
        return cls(
            mass_kg=float(c.m),
            rolling=float(f0 / (c.m * GRAVITY)),
            cdA_m2=float(2.0 * f2 / 1.2),
            wheel_inertia_kgm2=float(wheel.J),
            wheel_radius_m=0.293,
            engine_kW=engine_kW,
            efficiency=engine_efficiency(driven, engine_kW),
            driveline=efficiency,
            standing_kW=standing,
        )


def engine_power(driven: Any) -> Any:
    """Power at the flywheel [W], the engine's own inertia behind it."""
    r = driven.run.result
    return r["engine.w"] * (r["engine.tau_indicated"] + r["engine.tau_friction"] + r["engine.tau_auxiliaries"])


def engine_efficiency(driven: Any, engine_kW: float) -> tuple[float, ...]:
    """Work of the engine per energy of its fuel in classes of power around FRACTIONS."""
    power, fuel = engine_power(driven) / (1e3 * engine_kW), driven.fuel.rate * PETROL_LHV / (1e3 * engine_kW)
    edges = np.concatenate([[-np.inf], 0.5 * (np.array(FRACTIONS[1:]) + np.array(FRACTIONS[:-1])), [np.inf]])
    found = []
    for low, high in zip(edges, edges[1:], strict=False):
        inside = (power > max(low, 1e-4)) & (power <= high)
        found.append(float(power[inside].sum() / fuel[inside].sum()) if inside.sum() > 50 else np.nan)
    known = np.flatnonzero(np.isfinite(found))
    return tuple(float(x) for x in np.interp(range(len(found)), known, np.array(found)[known]))


def driveline_efficiency(driven: Any) -> tuple[float, float]:
    """(work that drives the wheels per work of the engine while it drives, power the standing car takes [kW]): the
    converter is dragged along in D."""
    r = driven.run.result
    v, a, power = r["car.v"], r["car.a"], engine_power(driven)
    road = (110.0 + 1.5 * v + 0.396 * v * v) * (v > 0.01)
    wheels = ((1250.0 + 3.4 / 0.293**2) * a + road) * v
    driving, standing = (wheels > 0.0) & (v > 0.5), v < 0.1
    idle = float(np.maximum(power[standing], 0.0).mean()) if standing.any() else 0.0
    # FASTSim adds auxiliary power all the time: it is not in the efficiency as well
    efficiency = float(wheels[driving].sum() / np.maximum(power[driving] - idle, 0.0).sum())
    return efficiency, 1e-3 * idle


#: runs in FASTSim's environment: the car as JSON on standard input, what came out as JSON on standard output
RUNNER = """
import json, sys, time
import numpy as np
import fastsim
told = json.load(sys.stdin)
car = told["car"]
veh = fastsim.vehicle.Vehicle.from_vehdb(1)
veh.veh_pt_type = "Conv"
veh.veh_override_kg = car["mass_kg"]
veh.drag_coef, veh.frontal_area_m2 = 1.0, car["cdA_m2"]
veh.wheel_rr_coef = car["rolling"]
veh.wheel_inertia_kg_m2 = car["wheel_inertia_kgm2"] / 4
veh.num_wheels, veh.wheel_radius_m = 4, car["wheel_radius_m"]
veh.fc_max_kw = car["engine_kW"]
veh.fc_pwr_out_perc = np.array(told["fractions"])
veh.fc_eff_map = np.array(car["efficiency"])
veh.fc_eff_type = 1
veh.trans_eff = car["driveline"]
veh.aux_kw = car["standing_kW"]
veh.stop_start = False
veh.set_derived()
veh.set_veh_mass()
props = fastsim.params.PhysicalProperties()
props.air_density_kg_per_m3, props.a_grav_mps2 = 1.2, 9.81
rows = np.array(told["cycle"])
cyc = fastsim.cycle.Cycle.from_dict({"cycSecs": rows[:, 0], "cycMps": rows[:, 1], "cycGrade": 0 * rows[:, 0],
                                     "cycRoadType": 0 * rows[:, 0]})
sim = fastsim.simdrive.SimDrive(cyc, veh)
sim.props = props
sim.sim_params.missed_trace_correction = False
begun = time.perf_counter()
sim.sim_drive()
took = time.perf_counter() - begun
J = lambda kw: float(np.sum(np.asarray(kw) * np.asarray(sim.cyc.dt_s)) * 1e3)
print(json.dumps({
    "fuel_J": J(sim.fs_kw_out_ach), "engine_J": J(sim.fc_kw_out_ach), "brake_J": J(sim.cyc_fric_brake_kw),
    "road_J": J(sim.drag_kw) + J(sim.rr_kw), "distance_m": float(np.sum(sim.dist_m)), "took_s": took,
    "idle_J": 0.0, "version": fastsim.__version__, "mass_kg": float(veh.veh_kg),
    "missed_mps": float(np.max(np.abs(np.asarray(sim.mps_ach) - rows[:, 1]))),
}))
"""


def fastsim_python(given: str = "") -> Path:
    """The interpreter that has FASTSim; ConfigError where there is none."""
    path = Path(given) if given else ROOT / "build" / "fastsim" / "bin" / "python"
    done = None
    if path.exists():
        done = subprocess.run([path, "-c", "import fastsim"], capture_output=True, text=True)
    if done is None or done.returncode:
        why = "no such interpreter" if done is None else done.stderr.strip().rpartition("\n")[2]
        how = "python -m venv build/fastsim && build/fastsim/bin/pip install fastsim==2.1.5"
        raise ConfigError(f"FASTSim is not there: {why}", file=str(path), allowed=how)
    return path


def run_fastsim(python: Path, car: Car, cycle: Path, duration: float) -> dict[str, Any]:
    """A cycle in FASTSim. Auxiliaries are in the efficiency of the engine, which is taken at its flywheel; what the
    standing car takes is FASTSim's auxiliary power, all the time."""
    lines = [line for line in cycle.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    rows = [[float(cell) for cell in line.split(",")] for line in lines[1:]]
    told = {"car": asdict(car), "fractions": FRACTIONS, "cycle": [r for r in rows if r[0] <= duration + 1e-9]}
    command = [python, "-W", "ignore", "-c", RUNNER]
    done = subprocess.run(command, input=json.dumps(told), capture_output=True, text=True)
    if done.returncode:
        raise ConfigError(f"FASTSim failed: {done.stderr.strip().rpartition(chr(10))[2]}", file=str(python))
    found: dict[str, Any] = json.loads(done.stdout.strip().rpartition("\n")[2])
    return found
