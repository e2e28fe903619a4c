"""Multibody parts that are one rigid body with symmetric rotors on it, hinged to the ground: a gyrostat.

The carrier is the piece on a ball joint (Spherical), or at the end of three massless Revolutes about x, y, z in turn (a
Cardan suspension, driven by torques). A piece on a Revolute of the carrier is a rotor if it is symmetric about that
axis: its mass centre lies on it, and its inertia across it is the same all round. It then belongs to the carrier as if
at rest, and spins with its moment about the axis. Rotor1D, Mounting1D and BevelGear1D on the carrier are ours.

Refused, with the reason: pieces whose inertia depends on an angle, closed loops, Revolutes about other axes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.components.bodies import CardanMount, RigidBody, SphericalMount
from torqueloop.core.components.carriers import BevelGear1D, Mounting1D, Rotor1D
from torqueloop.core.describe.component import Component
from torqueloop.core.reference.assembly import ImportedCase, NotMapped, Parameters, Quantity
from torqueloop.core.reference.attitude import gimbal_angles, gimbal_rates, quaternion, turn, unit
from torqueloop.core.reference.pieces import Rigid
from torqueloop.core.signals import Constant

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Parts = Mapping[str, tuple[str, Parameters]]
Body = tuple[str, float, Vector, Matrix]
Law = Callable[[Matrix], Vector]
#: a joint, the piece on it, the frame of the joint on that and where it is at phi = 0, the axis and J about it
Spinning = tuple[str, Rigid, tuple[str, tuple[Matrix, Vector]], tuple[Vector, float]]
#: relative differences of lengths and inertias below this are 0
SMALL = 1e-9


class Gyrostats:
    """All pieces of a case that are gyrostats."""

    def __init__(self, imported: ImportedCase, parts: Parts, pieces: Mapping[str, Rigid], bodies: list[Body]) -> None:
        self._imported = imported
        self._parts = parts
        self._pieces = pieces
        self._bodies = bodies
        #: names of the parts that are mapped
        self.taken: set[str] = set()

    def add(self, gravity: Vector) -> None:
        """Make the components; NotMapped with the reason."""
        for name, (kind, p) in self._parts.items():
            if kind == "Spherical":
                self._on_ball(name, p, gravity)
        for chain in self._chains():
            self._on_cardan(chain, gravity)

    # --- joints to the ground ------------------------------------------------------------------------------------
    def _on_ball(self, name: str, p: Parameters, gravity: Vector) -> None:
        ground, own = f"{name}.frame_a", f"{name}.frame_b"
        if not self._pieces[ground].ground or self._pieces[own].ground:
            raise NotMapped(f"multibody/Spherical {name}: only from the ground (frame_a) to a body is mapped")
        angles = np.array(p.start("angles", [0.0, 0.0, 0.0]), dtype=np.float64)
        if np.any(np.array(p.start("w_rel", [0.0, 0.0, 0.0]), dtype=np.float64)):
            raise NotMapped(f"multibody/Spherical {name}: only w_rel = 0 at the start is mapped")
        rotation = np.eye(3)
        for k in range(3):
            rotation = rotation @ turn(np.eye(3)[k], float(angles[k]))
        self.taken.add(name)
        self._carrier(name, ground, own, rotation, np.zeros(3), gravity, SphericalMount)

    def _chains(self) -> list[tuple[str, str, str]]:
        """Revolutes in turn from the ground to a body, with nothing between them."""
        revolutes = {n: p for n, (kind, p) in self._parts.items() if kind == "Revolute"}
        found = []
        for first in revolutes:
            chain = [first]
            while len(chain) < 3:
                piece = self._pieces[f"{chain[-1]}.frame_b"]
                after = [n for n in revolutes if self._pieces[f"{n}.frame_a"] is piece]
                if piece.ground or len(piece.poses) != 2 or len(after) != 1:
                    break
                chain.append(after[0])
            if self._pieces[f"{first}.frame_a"].ground and len(chain) == 3:
                for k, n in enumerate(chain):
                    off = np.abs(unit(revolutes[n]("n", [0.0, 0.0, 1.0])) - np.eye(3)[k]).max()
                    if off > SMALL:
                        raise NotMapped(
                            f"multibody/Revolute {n}: of a chain only x, y, z in turn at one point is mapped"
                        )
                found.append((chain[0], chain[1], chain[2]))
        return found

    def _on_cardan(self, chain: tuple[str, str, str], gravity: Vector) -> None:
        joints = [self._parts[name][1] for name in chain]
        angles = [float(p.start("phi", 0.0)) for p in joints]
        rates = [float(p.start("w", 0.0)) for p in joints]
        rotation = np.eye(3)
        for k in range(3):
            rotation = rotation @ turn(np.eye(3)[k], angles[k])
        back = turn(np.eye(3)[2], -angles[2])
        omega = (
            rotation.T @ np.eye(3)[0] * rates[0] + back @ np.eye(3)[1] * rates[1] + np.eye(3)[2] * rates[2]
        )  # fmt: skip
        self.taken |= set(chain)
        body = self._carrier(
            chain[2], f"{chain[0]}.frame_a", f"{chain[2]}.frame_b", rotation, omega, gravity, CardanMount
        )
        state = tuple(f"{body}.q{k}" for k in range(4))
        rate = tuple(f"{body}.w_{axis}" for axis in "xyz")
        for k, name in enumerate(chain):
            self._imported.quantities[f"{name}.phi"] = Quantity(state, law=_chosen(gimbal_angles, k))
            self._imported.quantities[f"{name}.w"] = Quantity((*state, *rate), law=_chosen(gimbal_rates, k))
            self._drive(name, f"{body}_mount.tau_{k + 1}")

    def _drive(self, revolute: str, port: str) -> None:
        """The torque in a joint: from a source on its axis flange, or none."""
        self._imported.inputs[port] = Constant(0.0)
        for pair in self._imported.case.connections["flange"]:
            if f"{revolute}.axis" not in pair:
                continue
            other = pair[1 - pair.index(f"{revolute}.axis")]
            owner, _ = self._imported.case.owner(other)
            component = self._imported.driveline.components.get(self._imported.names.get(owner, ""))
            if component is None or component.kind != "Torque" or owner in self._supported():
                raise NotMapped(f"multibody/Revolute {revolute}: on its axis only a Torque without support is mapped")
            self._imported.ports[f"{owner}.tau"] = [(port, 1.0)]
            self._imported.joined.append((other, f"{revolute}.axis"))
            del self._imported.driveline.components[self._imported.names.pop(owner)]

    def _supported(self) -> set[str]:
        flanges = {flange for pair in self._imported.case.connections["flange"] for flange in pair}
        return {flange.removesuffix(".support") for flange in flanges if flange.endswith(".support")}

    # --- the body ------------------------------------------------------------------------------------------------
    def _carrier(self, joint: str, ground: str, own: str, rotation: Matrix, omega: Vector, gravity: Vector,
                 mount: type[Component]) -> str:  # fmt: skip
        """The body with its rotors; its axes are those of the joint's frame on it. Its name in the driveline."""
        piece, base = self._pieces[own], self._pieces[ground].poses[ground]
        rotors = self._rotors(piece, own)
        m, centre, tensor = self._mass(piece, own)
        for _, other, seen, _ in rotors:
            m, centre, tensor = _together((m, centre, tensor), self._mass(other, seen[0], seen[1]))
        if m == 0.0:
            raise NotMapped(f"multibody: the body on {joint} has no mass")
        R = base[0] @ rotation
        q, at, g = quaternion(R), base[1] + R @ centre, gravity
        velocity = np.cross(omega, centre)
        body = self._imported.add(joint, RigidBody(
            m=m, I_11=tensor[0, 0], I_22=tensor[1, 1], I_33=tensor[2, 2], I_21=tensor[1, 0], I_31=tensor[2, 0],
            I_32=tensor[2, 1], g_x=g[0], g_y=g[1], g_z=g[2], q0=q[0], q1=q[1], q2=q[2], q3=q[3], x0=at[0], y0=at[1],
            z0=at[2], w0_x=omega[0], w0_y=omega[1], w0_z=omega[2], v0_x=velocity[0], v0_y=velocity[1],
            v0_z=velocity[2],
        ), suffix="_body")  # fmt: skip
        held = mount(r_x=-centre[0], r_y=-centre[1], r_z=-centre[2])
        self._imported.driveline.add(f"{body}_mount", held)
        frames = [f"{body}.frame_b", f"{body}_mount.frame_a"]
        for name, _, _, (n, J) in rotors:
            rotor = self._imported.add(name, Rotor1D(J=J, n_x=n[0], n_y=n[1], n_z=n[2]))
            frames.append(f"{rotor}.frame_a")
            self._imported.connectors[f"{name}.axis"] = f"{rotor}.flange_a"
        frames += self._one_dimensional(piece, own)
        self._imported.driveline.connect(*frames)
        self._rates(body, piece, own, rotors)
        piece.moving = True
        return body

    def _mass(
        self, piece: Rigid, frame: str, place: tuple[Matrix, Vector] | None = None
    ) -> tuple[float, Vector, Matrix]:
        """Mass, centre, tensor about the centre of a piece, in the axes of one of its frames (moved to `place`)."""
        G, o = piece.poses[frame]
        total = 0.0, np.zeros(3), np.zeros((3, 3))
        for at, m, c, tensor in self._bodies:
            if at in piece.poses:
                R = G.T @ piece.poses[at][0]
                centre = G.T @ (piece.at(at, c) - o)
                total = _together(total, (m, centre, R @ tensor @ R.T))
        if place is None:
            return total
        turned, shift = place
        return total[0], shift + turned @ total[1], turned @ total[2] @ turned.T

    def _rotors(
        self, piece: Rigid, own: str
    ) -> list[tuple[str, Rigid, tuple[str, tuple[Matrix, Vector]], tuple[Vector, float]]]:
        """Pieces on Revolutes of the carrier."""
        found = []
        G, o = piece.poses[own]
        for name, (kind, p) in self._parts.items():
            if kind != "Revolute" or name in self.taken:
                continue
            for here, there, sense in (("frame_a", "frame_b", 1.0), ("frame_b", "frame_a", -1.0)):
                other, near = f"{name}.{there}", f"{name}.{here}"
                if self._pieces[near] is not piece:
                    continue
                turning = self._pieces[other]
                if turning.ground or turning is piece or turning.moving:
                    raise NotMapped(f"multibody/Revolute {name}: a closed loop of joints")
                n = unit(p("n", [0.0, 0.0, 1.0]))
                place = (G.T @ piece.poses[near][0], G.T @ (piece.poses[near][1] - o))
                J = self._spin(name, turning, other, n)
                found.append((name, turning, (other, place), (sense * (place[0] @ n), J)))
                turning.moving = True
                self.taken.add(name)
        return found

    def _spin(self, name: str, turning: Rigid, frame: str, n: Vector) -> float:
        """Moment about the axis of a piece that is symmetric about it."""
        m, centre, tensor = self._mass(turning, frame)
        J = float(n @ tensor @ n)
        across = tensor - J * np.outer(n, n)
        mean = 0.5 * float(np.trace(across))
        round_ = mean * (np.eye(3) - np.outer(n, n))
        if np.abs(across - round_).max() > SMALL * mean or m * np.linalg.norm(np.cross(n, centre)) ** 2 > SMALL * mean:
            raise NotMapped(
                f"multibody/Revolute {name}: what turns on it is not symmetric about its axis (the inertia of the "
                "whole depends on the angle)"
            )
        joints = [n_ for n_, (kind, _) in self._parts.items()
                  if n_ != name and kind in ("Revolute", "Spherical", "GearConstraint")
                  and any(f.startswith(f"{n_}.") for f in turning.poses)]  # fmt: skip
        if joints:
            raise NotMapped(f"multibody/Revolute {name}: what turns on it carries the joint {joints[0]}")
        return J

    def _one_dimensional(self, piece: Rigid, own: str) -> list[str]:
        """Rotor1D, Mounting1D, BevelGear1D on the carrier; their frames."""
        frames = []
        G = piece.poses[own][0]
        for name, (kind, p) in self._parts.items():
            frame = f"{name}.frame_a"
            if kind not in ("Rotor1D", "Mounting1D", "BevelGear1D") or self._pieces[frame] is not piece:
                continue
            R = G.T @ piece.poses[frame][0]
            axes = {key: R @ unit(p(key, [1.0, 0.0, 0.0])) for key in ("n", "n_a", "n_b") if key in p or key == "n"}
            n = {f"n_{axis}": float(v) for axis, v in zip("xyz", axes["n"], strict=True)}
            p("nominalTorque", None)
            if kind == "Rotor1D":
                made: Component = Rotor1D(J=p("J"), exact=bool(p("exact", True)), **n)
            elif kind == "Mounting1D":
                made = Mounting1D(phi0=p("phi0", 0.0), **n)
            else:
                both = {f"n{side}_{axis}": float(v) for side in "ab"
                        for axis, v in zip("xyz", axes.get(f"n_{side}", R[:, 0]), strict=True)}  # fmt: skip
                made = BevelGear1D(ratio=p("ratio"), **both)
            frames.append(f"{self._imported.add(name, made)}.frame_a")
            self.taken.add(name)
        return frames

    def _rates(self, body: str, piece: Rigid, own: str, rotors: list[Spinning]) -> None:
        """w_a of the bodies: absolute, in the axes of their frame_a."""
        omega = tuple(f"{body}.w_{axis}" for axis in "xyz")
        G = piece.poses[own][0]
        for frame, *_ in self._bodies:
            key = frame.removesuffix(".frame_a")
            if frame in piece.poses:
                F = G.T @ piece.poses[frame][0]
                for k in range(3):
                    column = F[:, k]
                    self._imported.quantities[f"{key}.w_a[{k + 1}]"] = Quantity(omega, law=_along(column))
        for name, turning, (other, (place, _)), (n, _) in rotors:
            rotor = self._imported.names[name]
            for frame, *_ in self._bodies:
                if frame not in turning.poses:
                    continue
                F = place @ turning.poses[other][0].T @ turning.poses[frame][0]
                for k in range(3):
                    law = _turning_rate(F[:, k], n)
                    key = f"{frame.removesuffix('.frame_a')}.w_a[{k + 1}]"
                    self._imported.quantities[key] = Quantity((*omega, f"{rotor}.phi", f"{rotor}.w"), law=law)


def _chosen(law: Callable[[Matrix], tuple[Vector, ...]], k: int) -> Law:
    """The k-th result of a law."""

    def chosen(x: Matrix) -> Vector:
        return law(x)[k]

    return chosen


def _along(column: Vector) -> Law:
    """Component along an axis."""

    def along(x: Matrix) -> Vector:
        found: Vector = x @ column
        return found

    return along


def _turning_rate(column: Vector, n: Vector) -> Law:
    """Component of omega + n*w along an axis (column at phi = 0) that turns by phi about n."""

    def law(x: Matrix) -> Vector:
        phi = x[:, 3:4]
        turned = (
            np.cos(phi) * column + np.sin(phi) * np.cross(n, column) + (1.0 - np.cos(phi)) * (n @ column) * n
        )  # fmt: skip
        rate = x[:, :3] + x[:, 4:5] * n
        found: Vector = np.sum(turned * rate, axis=1)
        return found

    return law


def _together(a: tuple[float, Vector, Matrix], b: tuple[float, Vector, Matrix]) -> tuple[float, Vector, Matrix]:
    """Mass, centre and tensor about it of two bodies as one."""
    m = a[0] + b[0]
    if m == 0.0:
        return a
    centre = (a[0] * a[1] + b[0] * b[1]) / m
    tensor = np.zeros((3, 3))
    for part in (a, b):
        d = part[1] - centre
        tensor = tensor + part[2] + part[0] * (float(d @ d) * np.eye(3) - np.outer(d, d))
    return m, centre, tensor
