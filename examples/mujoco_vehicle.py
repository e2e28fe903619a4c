"""A MuJoCo car under the desk rig: its body rides, pitches and rolls on four wheels, tyre loads limit the brakes.

    pip install torqueloop[multibody]
    python examples/mujoco_vehicle.py                # virtual clock, the car in a process of its own
    python examples/mujoco_vehicle.py serve ENDPOINT # the car alone, for a rig that is started by hand

The powertrain of the rig owns the motion along the road (docs/vehicle_link.md): the car is told the impulse of its
tractive force and answers with air drag and what rolling resistance and brakes can hold. What it does across the road
is MuJoCo's: heave, pitch, roll of the body, hop of four wheels, in axes that go along with the car (gravity leans back
by its acceleration). Contact forces act at road height, so the body squats and dives, and each axle's brake force ends
at friction times its load: brakes of 1 g stop with what the tyres hold.

Axes x ahead, y to the left, z up. Equal messages give equal answers, bit for bit, on one machine and MuJoCo version.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

import torqueloop as tl
from torqueloop.hil.link.messages import StateMessage, StepMessage
from torqueloop.hil.vehicle.model import GRAVITY, VehicleModel
from torqueloop.hil.vehicle.vehicle_tables import load_vehicle_config

CONFIGS = Path(tl.__file__).parent / "configs"
#: file of the car along the road: mass, air, brakes, slope
ROAD_FILE = CONFIGS / "vehicles" / "bmw_528i_e28.toml"


@dataclass(frozen=True)
class Chassis:
    """BMW 528i (E28). Wheelbase and track: published (de.wikipedia.org BMW E28); all else assumed, in its class."""

    #: wheelbase, track [m]
    wheelbase: float = 2.625
    track: float = 1.445
    #: mass centre of the whole car: behind the front axle, above the road [m]
    behind_front: float = 1.31
    height: float = 0.54
    wheel_radius: float = 0.30
    #: mass of a wheel with its carrier [kg]
    wheel_mass: float = 40.0
    #: inertia of the body about x, y, z [kg m2]
    inertia: tuple[float, float, float] = (450.0, 2100.0, 2300.0)
    #: stiffness and damping at the wheel, front and rear [N/m, N s/m]
    spring: tuple[float, float] = (20e3, 23e3)
    damper: tuple[float, float] = (1900.0, 2000.0)
    #: stiffness and damping of a tyre
    tyre_spring: float = 200e3
    tyre_damper: float = 150.0
    #: friction of tyre and road [1], part of the brake force at the front
    friction: float = 0.9
    brake_front: float = 0.62
    #: longest step of MuJoCo [s]
    step_s: float = 2.5e-4


class MujocoCar(VehicleModel):
    """The road model's motion along the road, MuJoCo's across it."""

    def __init__(self, chassis: Chassis | None = None) -> None:
        super().__init__(load_vehicle_config(ROAD_FILE))
        self.chassis = c = chassis or Chassis()
        mass = self.config.body.mass_kg
        rear = c.behind_front / c.wheelbase
        #: load of a wheel at rest, front left, front right, rear left, rear right [N]
        self.rest = 0.5 * mass * GRAVITY * np.array([1 - rear, 1 - rear, rear, rear])
        self.model = mujoco.MjModel.from_xml_string(self._xml(mass))
        self.data = mujoco.MjData(self.model)
        mujoco.mj_forward(self.model, self.data)
        self._wheels = [self.model.body(f"wheel{k}").id for k in range(4)]
        self._level = self.data.xpos[self._wheels, 2].copy()
        #: present loads [N]
        self.loads = self.rest.copy()
        #: holding force of the last answer; the same while the car is advanced with it
        self._answered: float | None = None
        self._applied: float | None = None

    def _xml(self, mass: float) -> str:
        c = self.chassis
        sprung = mass - 4 * c.wheel_mass
        # the body's own mass centre, so that body and wheels together have theirs at (0, 0, height)
        front, rear = c.behind_front, c.behind_front - c.wheelbase
        x = -2 * c.wheel_mass * (front + rear) / sprung
        z = (mass * c.height - 4 * c.wheel_mass * c.wheel_radius) / sprung
        wheels = ""
        for k in range(4):
            a = k // 2
            static = self.rest[k] - c.wheel_mass * GRAVITY
            wheels += (
                f'<body name="wheel{k}" '
                f'pos="{(front, rear)[a] - x} {(0.5, -0.5)[k % 2] * c.track} {c.wheel_radius - z}">'
                f'<joint name="hop{k}" type="slide" axis="0 0 1" stiffness="{c.spring[a]}" damping="{c.damper[a]}" '
                f'springref="{-static / c.spring[a]}"/>'
                f'<inertial pos="0 0 0" mass="{c.wheel_mass}" diaginertia="0.8 1.2 0.8"/></body>'
            )
        i = c.inertia
        return f"""<mujoco><option timestep="{c.step_s}" integrator="implicitfast" gravity="0 0 {-GRAVITY}"/>
          <worldbody><body name="chassis" pos="{x} 0 {z}"><joint name="heave" type="slide" axis="0 0 1"/>
          <joint name="pitch" type="hinge" axis="0 1 0"/><joint name="roll" type="hinge" axis="1 0 0"/>
          <inertial pos="0 0 0" mass="{sprung}" diaginertia="{i[0]} {i[1]} {i[2]}"/>{wheels}</body></worldbody>
          </mujoco>"""

    # --- along the road ---------------------------------------------------------------------------------------------
    def _holds(self, slope: float, brake: float) -> float:
        """Rolling resistance of the present loads; brakes up to the friction of each axle."""
        if self._applied is not None:
            return self._applied
        return float(self.config.body.rolling * self.loads.sum() + self._brakes(brake).sum())

    def _proceed(self, tractive: float, brake: float, duration: float) -> None:
        """What holds the car until this message is what the last answer said: the rig has gone on with that too."""
        self._applied = self._answered
        super()._proceed(tractive, brake, duration)
        self._applied = None

    def _brakes(self, brake: float) -> np.ndarray[Any, Any]:
        """What the brakes of each axle can hold [N]."""
        c, most = self.chassis, brake * self.config.brakes.force_max_N
        grip = c.friction * np.array([self.loads[:2].sum(), self.loads[2:].sum()])
        return np.minimum(most * np.array([c.brake_front, 1.0 - c.brake_front]), grip)

    # --- the exchange -----------------------------------------------------------------------------------------------
    def step(self, message: StepMessage) -> StateMessage:
        """Advance both to the time of the message."""
        before = self._last
        found = super().step(message)
        if before is not None and message.t > before.t:
            tractive = (message.I_wheel - before.I_wheel) / (message.t - before.t)
            self._ride(tractive, found.a, found.grade, message.t - before.t, message.brake)
        roll, pitch = (float(self.data.joint(n).qpos[0]) for n in ("roll", "pitch"))
        body = {
            "chassis": [float(self.data.joint("heave").qpos[0]), pitch, roll],
            "loads": [float(n) for n in self.loads],
        }
        self._answered = self._holds(found.grade, message.brake)
        return replace(found, F_hold=self._answered, carrier=body)

    def _ride(self, tractive: float, a: float, slope: float, span: float, brake: float) -> None:
        """MuJoCo over one exchange, the forces along the road held."""
        c, data = self.chassis, self.data
        air = self._active(self.speed, 0.0)
        held = self.config.body.mass_kg * (a + GRAVITY * np.sin(slope)) - air - tractive
        share = self._brakes(brake)
        front = share[0] / share.sum() if share.sum() > 1.0 else 0.5
        along = 0.5 * np.array([held * front, held * front, *([tractive + held * (1.0 - front)] * 2)])
        self.model.opt.gravity[:] = (-a - GRAVITY * np.sin(slope), 0.0, -GRAVITY * np.cos(slope))
        steps = max(1, round(span / c.step_s))
        self.model.opt.timestep = span / steps
        for _ in range(steps):
            mujoco.mj_step1(self.model, data)
            self._tyres(along, air)
            mujoco.mj_step2(self.model, data)

    def _tyres(self, along: np.ndarray[Any, Any], air: float) -> None:
        """Forces on wheels at road height, none that pulls down; air drag at the height of the mass centre."""
        c, data = self.chassis, self.data
        up = data.xpos[self._wheels, 2] - self._level
        rate = np.array([_rising(self.model, data, w) for w in self._wheels])
        self.loads = np.maximum(self.rest - c.tyre_spring * up - c.tyre_damper * rate, 0.0)
        for k, wheel in enumerate(self._wheels):
            below = data.xpos[wheel, 2]
            data.xfrc_applied[wheel] = (along[k], 0.0, self.loads[k], 0.0, -below * along[k], 0.0)
        chassis = self.model.body("chassis").id
        above = c.height - (data.xpos[chassis, 2] - data.qpos[0])
        data.xfrc_applied[chassis] = (air, 0.0, 0.0, 0.0, above * air, 0.0)

    # --- state ------------------------------------------------------------------------------------------------------
    def save(self) -> dict[str, Any]:
        """With MuJoCo's."""
        own = {"qpos": self.data.qpos.tolist(), "qvel": self.data.qvel.tolist(), "loads": self.loads.tolist()}
        return {**super().save(), **own, "answered": self._answered}

    def load(self, data: Any) -> None:
        """Inverse of save."""
        super().load(data)
        self.data.qpos[:], self.data.qvel[:] = data["qpos"], data["qvel"]
        self.loads, self._answered = np.array(data["loads"]), data["answered"]
        mujoco.mj_forward(self.model, self.data)


def _rising(model: Any, data: Any, body: int) -> float:
    """Velocity of a body's mass centre along z."""
    found = np.zeros(6)
    mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_BODY, body, found, 0)
    return float(found[5])


RIG = """extends = "desk_4hp22"
without = ["vehicle.start"]
[rig]
name = "mujoco_4hp22"
[vehicle]
endpoint = "{endpoint}"
[driver]
pedal = [[0.0, 0.0], [1.5, 0.0], [1.7, 1.0], [9.0, 1.0], [9.1, 0.0]]
brake = [[0.0, 0.3], [1.3, 0.3], [1.5, 0.0], [9.2, 0.0], [9.5, 0.9]]
brake_switch = [[0.0, 1.0], [1.5, 1.0], [1.5, 0.0], [9.2, 0.0], [9.2, 1.0]]
[gates]
all_gears = "shifts >= 1"
"""


def main() -> None:
    """Full throttle through one shift, then hard on the brakes; the car in its own process."""
    import subprocess
    import tempfile

    endpoint = "tcp://127.0.0.1:43191"
    with tempfile.TemporaryDirectory() as place:
        rig = Path(place) / "mujoco_4hp22.toml"
        rig.write_text(RIG.format(endpoint=endpoint), encoding="utf-8")
        log = Path(place) / "ride.csv"
        car = subprocess.Popen([sys.executable, __file__, "serve", endpoint, str(log)])
        try:
            run = tl.run(rig, duration=13.0, out=Path(place) / "run")
        finally:
            car.terminate()
            car.wait(30)
        ride = np.loadtxt(log, delimiter=",", skiprows=1)
        print(f"state hash {run.stats.hash}, {'passed' if run.passed else 'failed'}")
        print("coupling: speeds of rig and car differ by", f"{run.metrics['vehicle_coupling_max_mps']:.1e} m/s at most")
        for words, begin, end in (("full throttle", 2.0, 9.0), ("braking", 9.6, 13.0)):
            part = ride[(ride[:, 0] > begin) & (ride[:, 0] < end)]
            pitch = np.degrees(part[:, 3])
            print(f"{words}: pitch {pitch.min():+.2f} .. {pitch.max():+.2f} deg (+: nose down), "
                  f"load of the rear axle {part[:, 7:9].sum(1).min():.0f} .. {part[:, 7:9].sum(1).max():.0f} N, "
                  f"least acceleration {part[:, 1].min():.2f} m/s2")  # fmt: skip


def serve(endpoint: str, log: Path | None) -> None:
    """The car as a process; its ride as CSV."""
    from torqueloop.hil.vehicle.process import serve as serve_rig

    car = MujocoCar()
    rows: list[list[float]] = []
    advance = car.step

    def step(message: StepMessage) -> StateMessage:
        found = advance(message)
        rows.append([message.t, found.a, *found.carrier["chassis"], *found.carrier["loads"]])
        return found

    car.step = step  # type: ignore[method-assign]
    serve_rig(car, "MuJoCo car", endpoint, lockstep=True)  # until the rig says bye, or SIGTERM
    if log is not None:
        head = "t_s,a_mps2,heave_m,pitch_rad,roll_rad,load_fl_N,load_fr_N,load_rl_N,load_rr_N"
        np.savetxt(log, rows, delimiter=",", header=head, comments="")


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(sys.argv[2], Path(sys.argv[3]) if len(sys.argv) > 3 else None)
    else:
        main()
