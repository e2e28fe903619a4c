"""Bodies and drivelines as one system: at every instant one linear system for accelerations and multipliers.

    [ M(q)   C(q)   -A^T ] [dv/dt]   [ tau - h(q, v) - gyroscopic moments of the rotors ]
    [ C^T    M1          ] [du/dt] = [ f1(z, u, t) - J N^T n·(dJw/dt v)                 ]
    [ A(q)            0  ] [  λ  ]   [ -dA/dt (v, u)                                    ]

C = sum Jw^T n J N over the rotors (w = N u, Jw: angular velocity of the carrier over v), M1 constant, from the compiled
driveline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import (
    CompileError,
    DuplicateError,
    OverconstrainedError,
    UnknownNameError,
    did_you_mean,
)
from torqueloop.core.multibody.carried import Carried, at
from torqueloop.core.multibody.friction import STUCK
from torqueloop.core.multibody.rows import PointHeld, Row
from torqueloop.core.multibody.shafts import BodyShaft, ShaftGeometry, Side, Twist
from torqueloop.core.multibody.tree import BuiltTree, Floats, Tree, cross, unit
from torqueloop.core.signals import Signal

#: a row of whose direction less than this is left beside the rows before it follows from them
DEPENDENT = 1e-9


@dataclass(frozen=True, eq=False)
class State:
    """q: joints (quaternions x, y, z, w), v: their velocities; z, u: angles and speeds of all drivelines in turn.
    turned: of each shaft with joints the angle of its zero references, at the end of the last step."""

    q: Floats
    v: Floats
    z: Floats
    u: Floats
    turned: Floats = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True, eq=False)
class Solution:
    """dv/dt, du/dt, the multiplier of every row, and the force of every friction element along its row."""

    a: Floats
    du: Floats
    multipliers: Floats
    frictions: Floats


class Coupled:
    """A tree, the drivelines on it and the rows between them.

    joint_torques: signals of torques (forces) in revolute (prismatic) joints, between body and parent. moments: three
    signals of a moment on a body from outside, along its axes.
    UnknownNameError: a body, joint or flange that does not exist, with who names it.
    """

    def __init__(
        self,
        tree: Tree,
        carried: Sequence[Carried] = (),
        rows: Sequence[Row | PointHeld] = (),
        joint_torques: Mapping[str, Signal] | None = None,
        moments: Mapping[str, tuple[Signal, Signal, Signal]] | None = None,
        shafts: Sequence[BodyShaft] = (),
    ) -> None:
        self.built = BuiltTree(tree)
        self.carried = tuple(carried)
        names = [c.name for c in carried] + [r.name for r in rows] + [s.name for s in shafts]
        if twice := {n for n in names if names.count(n) > 1}:
            raise DuplicateError(f"several drivelines or rows are called {', '.join(sorted(twice))}")
        self.nv = int(self.built.model.nv)
        self.starts = np.cumsum([0, *(c.model.n for c in carried)])
        self.nu = int(self.starts[-1])
        self.carriers = [self.built.index(c.body, f"driveline {c.name!r}") for c in carried]
        self.torques = {self.built.coordinate(k, "joint_torques"): s for k, s in (joint_torques or {}).items()}
        self.moments = {self.built.index(k, "moments"): m for k, m in (moments or {}).items()}
        self.friction_names = [f"{c.name}.{f.name}" for c in self.carried for f in c.frictions]
        self.friction_rows = self._friction_rows()
        self.points = [r for r in rows if isinstance(r, PointHeld)]
        self.rows = [r for r in rows if isinstance(r, Row)]
        self.held = [self.built.index(p.body, f"row {p.name!r}") for p in self.points]
        self.turning_rows = [{self.built.index(b, f"row {r.name!r}"): np.array(n, float) for b, n in r.rates.items()}
                       for r in self.rows]  # fmt: skip
        self.constant = np.array([self._constant(r) for r in self.rows]).reshape(len(self.rows), self.nv + self.nu)
        #: rows with an equation of angles: those without angular velocities of bodies
        self.holonomic = [not rates for rates in self.turning_rows]
        for row in self.rows:
            for body, vector in row.rates.items():
                unit(vector, row.name, f"rates.{body}")
        self._put_together(shafts)
        self.row_names = [r.name for r in self.rows] + [f"{p.name}.f_{x}" for p in self.points for x in "xyz"]

    def _put_together(self, shafts: Sequence[BodyShaft]) -> None:
        """Shafts with joints, as they are where all joints are at 0; over u: the speeds of their flanges."""
        pin, model, data = self.built.pin, self.built.model, self.built.data
        pin.forwardKinematics(model, data, np.array(pin.neutral(model)))
        #: bodies of both ends, and the speeds of both flanges over (v, u)
        self.shaft_bodies: list[tuple[int, int]] = []
        self.shaft_flanges: list[tuple[Floats, Floats]] = []
        self.shafts: list[ShaftGeometry] = []
        for shaft in shafts:
            ends = [self._flange(name, f"shaft {shaft.name!r}") for name in (shaft.flange_a, shaft.flange_b)]
            if ends[0][0] == ends[1][0]:
                raise CompileError(f"shaft {shaft.name!r}: both of its ends are on one body; a JointShaft of its "
                                   "driveline has constant bends", [shaft.name])  # fmt: skip
            self.shaft_bodies.append((ends[0][0], ends[1][0]))
            self.shaft_flanges.append((ends[0][1], ends[1][1]))
            self.shafts.append(ShaftGeometry(shaft, self._side(ends[0][0]), self._side(ends[1][0])))

    def _side(self, joint: int) -> Side:
        place = self.built.data.oMi[joint]
        return Side(np.array(place.rotation), np.array(place.translation))

    def _flange(self, shaft: str, what: str) -> tuple[int, Floats]:
        """Body of "DRIVELINE.COMPONENT.FLANGE", and its speed over (v, u)."""
        names = [c.name for c in self.carried]
        driveline, _, flange = shaft.partition(".")
        if driveline not in names:
            raise UnknownNameError(f"{what}: there is no driveline {driveline!r}", hint=did_you_mean(driveline, names))
        k = names.index(driveline)
        line = np.zeros(self.nv + self.nu)
        start = self.nv + self.starts[k]
        line[start : start + self.carried[k].model.n] = self.carried[k].flange(flange, what)
        return self.carriers[k], line

    def twists(self, s: State) -> list[Twist]:
        """Of all shafts with joints, at places that the library knows already."""
        found = []
        for k, geometry in enumerate(self.shafts):
            a, b = (self._side(joint) for joint in self.shaft_bodies[k])
            phi_a, phi_b = (float(line[self.nv :] @ s.z) for line in self.shaft_flanges[k])
            near = float(s.turned[k]) if s.turned.size else 0.0
            found.append(geometry.twist(a, b, phi_a, phi_b, near))
        return found

    def turned(self, s: State) -> Floats:
        """Angles of the zero references of all shafts with joints."""
        if self.shafts:
            self.built.pin.forwardKinematics(self.built.model, self.built.data, s.q)
        return np.array([found.psi for found in self.twists(s)])

    def shaft_twists(self, s: State) -> Floats:
        """Twists of all shafts with joints."""
        if self.shafts:
            self.built.pin.forwardKinematics(self.built.model, self.built.data, s.q)
        return np.array([found.D for found in self.twists(s)])

    def slopes(self, s: State, jacobians: dict[int, Floats]) -> list[tuple[Twist, Floats]]:
        """The twist of every shaft with joints, and what it grows by per speed, over (v, u)."""
        found = []
        for k, twist in enumerate(self.twists(s)):
            line = sum(g * flange for g, flange in zip(twist.over_angle, self.shaft_flanges[k], strict=True))
            assert isinstance(line, np.ndarray)
            for end, joint in enumerate(self.shaft_bodies[k]):
                turn = np.array(self.built.data.oMi[joint].rotation)
                along = turn.T @ (twist.over_place * (1.0 if end else -1.0))
                about = turn.T @ twist.over_turn[end] + cross(self.shafts[k].at[end], along)
                line[: self.nv] += jacobians[joint][:3].T @ along + jacobians[joint][3:].T @ about
            found.append((twist, line))
        return found

    def torque(self, k: int, twist: Twist, line: Floats, s: State) -> tuple[float, float]:
        """Torque of shaft k, and the rate of its twist."""
        rate = float(line @ np.concatenate([s.v, s.u]))
        return self.shafts[k].shaft.c * twist.D + self.shafts[k].shaft.d * rate, rate

    def shaft_torques(self, s: State) -> list[tuple[float, float]]:
        """Torque and rate of the twist of every shaft with joints."""
        if not self.shafts:
            return []
        slopes = self.slopes(s, self.mass(s.q)[1])
        return [self.torque(k, twist, line, s) for k, (twist, line) in enumerate(slopes)]

    def _constant(self, row: Row) -> Floats:
        line = np.zeros(self.nv + self.nu)
        for joint, value in row.joints.items():
            line[self.built.coordinate(joint, f"row {row.name!r}")] += value
        for shaft, value in row.shafts.items():
            line += value * self._flange(shaft, f"row {row.name!r}")[1]
        return line

    def _friction_rows(self) -> Floats:
        rows = np.zeros((len(self.friction_names), self.nv + self.nu))
        owners = [(k, f) for k, c in enumerate(self.carried) for f in c.frictions]
        for row, (k, friction) in zip(rows, owners, strict=True):
            row[self.nv + int(self.starts[k]) : self.nv + int(self.starts[k + 1])] = friction.row
        return rows

    def limits(self, t: float, before: bool = False, slides: bool = False) -> Floats:
        """(elements, 2): what each friction element bears against forward and against backward motion, at rest or from
        where it slides."""
        found = [f.limits(c.given(t, before), slides) for c in self.carried for f in c.frictions]
        return np.array(found).reshape(len(self.friction_names), 2)

    def slips(self, s: State) -> Floats:
        """Slip of every friction element."""
        return np.asarray(self.friction_rows @ np.concatenate([s.v, s.u]))

    def sliding(self, t: float, s: State, modes: Sequence[int], before: bool = False) -> Floats:
        """Forces along their rows of those that slide, 0 of the others."""
        slips, found, k = self.slips(s), np.zeros(len(self.friction_names)), 0
        for carried in self.carried:
            given = carried.given(t, before) if carried.frictions else None
            for friction in carried.frictions:
                if modes[k] and given is not None:
                    found[k] = friction.sliding(float(slips[k]), modes[k], given)
                k += 1
        return found

    def part(self, k: int) -> slice:
        """Place of driveline k in z and u."""
        return slice(int(self.starts[k]), int(self.starts[k + 1]))

    def solve(self, t: float, s: State, before: bool = False, modes: Sequence[int] = ()) -> Solution:
        """Accelerations and multipliers; `before`: where a torque jumps at t, with what it is until then. modes: of
        the friction elements, 0 stuck, 1 and -1 sliding forward and backward."""
        mass, force, matrix, rest = self.equations(t, s, before)
        frictions = self.sliding(t, s, modes, before)
        stuck = [k for k, mode in enumerate(modes) if mode == STUCK]
        matrix = np.vstack([matrix, self.friction_rows[stuck]])
        rest = np.concatenate([rest, np.zeros(len(stuck))])
        n, m = len(mass), len(matrix)
        whole, sides = _whole(mass, matrix), np.concatenate([force + self.friction_rows.T @ frictions, -rest])
        if np.linalg.matrix_rank(matrix) < m:
            # more stick than speeds are held: the least forces of those that do it
            found = np.linalg.lstsq(whole, sides, rcond=None)[0]
        else:
            found = np.linalg.solve(whole, sides)
        frictions[stuck] = found[n + m - len(stuck) :]
        return Solution(found[: self.nv], found[self.nv : n], found[n : n + m - len(stuck)], frictions)

    def responses(self, t: float, s: State, modes: Sequence[int], resting: list[int]) -> tuple[Floats, Floats]:
        """Of friction elements without slip: the rates of their slips without their forces, and what each force changes
        them by (k, k). modes: of the others; 0 of these."""
        mass, force, matrix, rest = self.equations(t, s)
        rows, n = self.friction_rows[resting], len(mass)
        free = np.concatenate([force + self.friction_rows.T @ self.sliding(t, s, modes), -rest])
        each = np.vstack([rows.T, np.zeros((len(matrix), len(resting)))])
        found = rows @ np.linalg.solve(_whole(mass, matrix), np.column_stack([free, each]))[:n]
        return found[:, 0], found[:, 1:]

    def equations(self, t: float, s: State, before: bool = False) -> tuple[Floats, Floats, Floats, Floats]:
        """Mass matrix and forces of all coordinates, A, and dA/dt (v, u)."""
        mass, jacobians = self.mass(s.q)
        model, data, pin = self.built.model, self.built.data, self.built.pin
        force = np.zeros(self.nv + self.nu)
        force[: self.nv] = -pin.nonLinearEffects(model, data, s.q, s.v)
        for k, signal in self.torques.items():
            force[k] += at(signal, t, before)
        for joint, moment in self.moments.items():
            force[: self.nv] += jacobians[joint][3:].T @ np.array([at(x, t, before) for x in moment])
        pin.forwardKinematics(model, data, s.q, s.v, np.zeros(self.nv))
        for k, carried in enumerate(self.carried):
            part, joint = self.part(k), self.carriers[k]
            z, u = s.z[part], s.u[part]
            along = slice(self.nv + part.start, self.nv + part.stop)
            force[along] += carried.force(t, z, u, before)
            omega, rest = data.v[joint].angular, data.a[joint].angular
            for rotor in carried.rotors:
                force[along] -= rotor.J * rotor.row * (rotor.axis @ rest)
                force[: self.nv] -= jacobians[joint][3:].T @ cross(omega, rotor.axis) * (rotor.J * (rotor.row @ u))
        for k, (twist, line) in enumerate(self.slopes(s, jacobians)):
            force -= self.torque(k, twist, line, s)[0] * line
        matrix, rest = self._rows(jacobians)
        return mass, force, matrix, rest

    def mass(self, q: Floats) -> tuple[Floats, dict[int, Floats]]:
        """Mass matrix of (v, u), and the Jacobians (6, nv) of bodies in their own axes."""
        built = self.built
        mass = np.zeros((self.nv + self.nu,) * 2)
        mass[: self.nv, : self.nv] = built.pin.crba(built.model, built.data, q)
        lower = np.tril_indices(self.nv, -1)
        mass[lower] = mass.T[lower]
        built.pin.computeJointJacobians(built.model, built.data, q)
        bent = (j for ends in self.shaft_bodies for j in ends)
        turned = (j for rates in self.turning_rows for j in rates)
        joints = {*bent, *self.carriers, *self.held, *self.moments, *turned}
        local = built.pin.LOCAL
        jacobians = {j: np.array(built.pin.getJointJacobian(built.model, built.data, j, local)) for j in joints}
        for k, carried in enumerate(self.carried):
            part = slice(self.nv + int(self.starts[k]), self.nv + int(self.starts[k + 1]))
            mass[part, part] = carried.model.arrays.M
            turn = jacobians[self.carriers[k]][3:]
            for rotor in carried.rotors:
                mass[: self.nv, part] += rotor.J * np.outer(turn.T @ rotor.axis, rotor.row)
            mass[part, : self.nv] = mass[: self.nv, part].T
        return mass, jacobians

    def _rows(self, jacobians: dict[int, Floats]) -> tuple[Floats, Floats]:
        """A and dA/dt (v, u), from the kinematics at hand (accelerations of the bodies for dv/dt = 0)."""
        data = self.built.data
        matrix = np.zeros((len(self.row_names), self.nv + self.nu))
        rest = np.zeros(len(matrix))
        matrix[: len(self.rows)] = self.constant
        for k, turned in enumerate(self.turning_rows):
            for joint, vector in turned.items():
                matrix[k, : self.nv] += vector @ jacobians[joint][3:]
                rest[k] += vector @ data.a[joint].angular
        for k, (point, joint) in enumerate(zip(self.points, self.held, strict=True)):
            lines = slice(len(self.rows) + 3 * k, len(self.rows) + 3 * k + 3)
            arm, turn, jac = np.array(point.point, float), data.oMi[joint].rotation, jacobians[joint]
            matrix[lines, : self.nv] = turn @ (jac[:3] - np.cross(arm, jac[3:].T).T)
            omega, a = data.v[joint].angular, data.a[joint]
            speed = data.v[joint].linear + cross(omega, arm)
            rest[lines] = turn @ (a.linear + cross(a.angular, arm) + cross(omega, speed))
        return matrix, rest

    def places(self, q: Floats, z: Floats, q0: Floats) -> Floats:
        """What rows keep constant: sums of angles (0 for those with `rates`), places of points along world axes."""
        model, data, pin = self.built.model, self.built.data, self.built.pin
        pin.forwardKinematics(model, data, q)
        turned = pin.difference(model, q0, q) if self.rows else np.zeros(self.nv)
        angles = self.constant @ np.concatenate([turned, z])
        places = [data.oMi[j].act(np.array(p.point, float)) for p, j in zip(self.points, self.held, strict=True)]
        return np.concatenate([np.where(self.holonomic, angles, 0.0), *places])

    def check_rows(self, s: State) -> None:
        """OverconstrainedError names the first row that follows from (or contradicts) those before it."""
        mass, _, matrix, _ = self.equations(0.0, s)
        factor = np.linalg.cholesky(mass)
        known: list[Floats] = []
        for name, line in zip(self.row_names, matrix, strict=True):
            scaled = np.linalg.solve(factor, line)
            left = scaled - sum((e * (e @ scaled) for e in known), np.zeros(len(line)))
            if not np.linalg.norm(left) > DEPENDENT * np.linalg.norm(scaled):
                before = self.row_names[: len(known)]
                raise OverconstrainedError(f"row {name!r} over-determines: at the start it follows from "
                                           f"{', '.join(before) or 'nothing, it holds no speed'}")  # fmt: skip
            known.append(left / np.linalg.norm(left))

    def wrenches(self, s: State, found: Solution, t: float = 0.0) -> Floats:
        """(bodies, 6): force and moment of each joint on its body at the joint, along the axes of the body.

        All that goes through the joint: bearing, drive and gear torques about its axis, joint_torques.
        """
        pin, model, data = self.built.pin, self.built.model, self.built.data
        pin.forwardKinematics(model, data, s.q, s.v, found.a)
        outer = [pin.Force.Zero() for _ in range(model.njoints)]
        for k, carried in enumerate(self.carried):
            joint, part = self.carriers[k], self.part(k)
            omega = data.v[joint].angular.copy()
            for rotor in carried.rotors:
                spin = rotor.J * (rotor.row @ s.u[part])
                moment = -rotor.J * (rotor.row @ found.du[part]) * rotor.axis - cross(omega, rotor.axis) * spin
                outer[joint] += pin.Force(np.zeros(3), moment)
        for joint, outside in self.moments.items():
            outer[joint] += pin.Force(np.zeros(3), np.array([x.value(t) for x in outside]))
        torques = self.shaft_torques(s)
        pin.forwardKinematics(model, data, s.q, s.v, found.a)
        for k, twist in enumerate(self.twists(s)):
            for end, joint in enumerate(self.shaft_bodies[k]):
                turn = data.oMi[joint].rotation
                force = turn.T @ twist.over_place * (torques[k][0] * (-1.0 if end else 1.0))
                moment = -torques[k][0] * turn.T @ twist.over_turn[end] + cross(self.shafts[k].at[end], force)
                outer[joint] += pin.Force(force, moment)
        for turned, value in zip(self.turning_rows, found.multipliers, strict=False):
            for joint, vector in turned.items():
                outer[joint] += pin.Force(np.zeros(3), value * vector)
        for k, (point, joint) in enumerate(zip(self.points, self.held, strict=True)):
            first = len(self.rows) + 3 * k
            force = data.oMi[joint].rotation.T @ found.multipliers[first : first + 3]
            outer[joint] += pin.Force(force, cross(np.array(point.point, float), force))
        forces = pin.StdVec_Force()
        forces.extend(outer)
        pin.rnea(model, data, s.q, s.v, found.a, forces)
        return np.array([data.f[j].vector for j in range(1, model.njoints)]).reshape(-1, 6)

    def turning(self, s: State, joint: int) -> Floats:
        """Angular velocity of a body along its axes, rad/s."""
        self.built.pin.forwardKinematics(self.built.model, self.built.data, s.q, s.v)
        return np.array(self.built.data.v[joint].angular)

    def energy(self, s: State) -> float:
        """Kinetic, of gravity and in the springs, J."""
        mass, _ = self.mass(s.q)
        speeds = np.concatenate([s.v, s.u])
        height = self.built.pin.computePotentialEnergy(self.built.model, self.built.data, s.q)
        springs = sum(c.spring_energy(s.z[self.part(k)]) for k, c in enumerate(self.carried))
        springs += sum(0.5 * g.shaft.c * twist.D**2 for g, twist in zip(self.shafts, self.twists(s), strict=True))
        return float(0.5 * speeds @ mass @ speeds + height + springs)

    def momentum(self, s: State) -> Floats:
        """(6) momentum, and angular momentum about the origin of the world, along its axes."""
        pin, model, data = self.built.pin, self.built.model, self.built.data
        pin.computeCentroidalMomentum(model, data, s.q, s.v)
        linear = np.array(data.hg.linear)
        angular = data.hg.angular + cross(data.com[0], linear)
        for k, carried in enumerate(self.carried):
            turn = data.oMi[self.carriers[k]].rotation
            for rotor in carried.rotors:
                angular = angular + turn @ rotor.axis * (rotor.J * (rotor.row @ s.u[self.part(k)]))
        return np.concatenate([linear, angular])


def _whole(mass: Floats, matrix: Floats) -> Floats:
    """The matrix of the system of equations above."""
    n, m = len(mass), len(matrix)
    whole = np.zeros((n + m, n + m))
    whole[:n, :n], whole[:n, n:], whole[n:, :n] = mass, -matrix.T, matrix
    return whole
