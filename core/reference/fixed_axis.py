"""Multibody parts that turn about axes at rest, as mechanics of one dimension.

Frames that are rigidly joined form a body; World and Fixed belong to the ground. A body hinged to the ground by one
Revolute (or one side of a GearConstraint) can only turn about that axis e, which stays where it is, so

    J*a = sum of e.T     J = sum over its parts of e.I_CM.e + m*d^2, d = distance of their centre of mass from the axis

holds exactly: an Inertia. GearConstraint adds phi_a = ratio*phi_b, an IdealGear; a Torque acts with its component along
the axis (the axis is at rest in the ground and in the body, so the component is constant in either frame). Rotor1D,
Mounting1D and BevelGear1D on the ground are Inertia, Fixed and IdealGear. Bearings take all other forces and moments.

Bodies that move in space with symmetric rotors on them are gyrostats (gyrostat.py). What is refused, with the reason:
other bodies whose axis moves (their inertia depends on angles), and gravity with a lever on a hinge (a pendulum).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.components.gears import IdealGear
from torqueloop.core.components.shafts import Fixed, Inertia
from torqueloop.core.components.sources import Torque
from torqueloop.core.reference.assembly import ImportedCase, NotMapped, Parameters, Quantity
from torqueloop.core.reference.attitude import turn, unit
from torqueloop.core.reference.bodies import body_of
from torqueloop.core.reference.gyrostat import Gyrostats
from torqueloop.core.reference.pieces import HERE, Pose, Rigid

Vector = NDArray[np.float64]
#: lengths and sines below this are 0: the directions of a case are decimal numbers
SMALL = 1e-9
#: frames of the parts that are one rigid piece
RIGID = {"FixedTranslation", "FixedRotation", "BodyShape", "BodyCylinder", "BodyBox", "Body", "PointMass", "CutTorque",
         "CutForce", "CutForceAndTorque"}  # fmt: skip
SENSORS = {"AbsoluteAngularVelocity", "AbsoluteSensor", "AbsolutePosition", "AbsoluteVelocity", "AbsoluteAngles",
           "RelativeSensor", "RelativeAngularVelocity"}  # fmt: skip
ONE_D = {"Rotor1D", "Mounting1D", "BevelGear1D"}
JOINTS = {"Revolute", "GearConstraint", "Spherical"}
KNOWN = RIGID | SENSORS | ONE_D | JOINTS | {"World", "Fixed", "Torque", "WorldTorque"}

#: what one dimension lacks for a moving carrier
MOVING = "mechanics of one dimension has no inertia that depends on attitude and no gyroscopic moments"


def _axes_of(kind: str, p: Parameters) -> str:
    """Frame in whose axes a torque is given."""
    return str(p("resolveInFrame", "frame_b" if kind == "Torque" else "world")).rpartition(".")[2]


class FixedAxis:
    """All multibody components of a case."""

    def __init__(self, imported: ImportedCase, parts: dict[str, tuple[str, Parameters]]) -> None:
        self._imported = imported
        self._parts = parts
        self._pieces: dict[str, Rigid] = {}

    def add(self) -> None:
        """Make the components; NotMapped with the reason where one dimension is not enough."""
        for name, (kind, _) in self._parts.items():
            if kind not in KNOWN:
                raise NotMapped(f"multibody/{kind} {name}: only turning about axes at rest is mapped; {MOVING}")
        self._join_frames()
        gravity = self._gravity()
        gyrostats = Gyrostats(self._imported, self._parts, self._pieces, self._bodies())
        gyrostats.add(gravity)
        self._parts = {name: part for name, part in self._parts.items() if name not in gyrostats.taken}
        for name, (kind, p) in self._parts.items():
            if kind == "Revolute":
                self._revolute(name, p)
            elif kind == "GearConstraint":
                self._gear_constraint(name, p)
        bodies = self._bodies()
        for piece in {id(r): r for r in self._pieces.values() if not r.moving}.values():
            self._inertia(piece, bodies, gravity)
        for name, (kind, p) in self._parts.items():
            if kind in ONE_D:
                self._on_ground(name, kind, p)
            elif kind in ("Torque", "WorldTorque"):
                self._torque(name, kind, p)

    # --- geometry -----------------------------------------------------------------------------------------------
    def _join_frames(self) -> None:
        """Rigid pieces from the parts and the frame connections."""
        for name, (kind, p) in self._parts.items():
            frames = self._frames(name, kind)
            if kind in ("World", "Fixed"):
                r = np.array(p("r", [0.0, 0.0, 0.0]), dtype=np.float64) if kind == "Fixed" else np.zeros(3)
                piece = Rigid({frames[0]: (np.eye(3), r)}, ground=True)
                self._pieces[frames[0]] = piece
            elif kind in RIGID and len(frames) == 2:
                self._pieces |= dict.fromkeys(frames, Rigid({frames[0]: HERE, frames[1]: self._link(kind, p)}))
            else:
                for frame in frames:
                    self._pieces[frame] = Rigid({frame: HERE})
            if kind in ("Torque", "WorldTorque") and _axes_of(kind, p) == "frame_resolve":
                if not self._joined(f"{name}.frame_resolve"):
                    raise NotMapped(f"multibody/{kind} {name}: its frame_resolve is joined to nothing")
                self._pieces[f"{name}.frame_resolve"] = Rigid({f"{name}.frame_resolve": HERE})
        grounds = [f for f, r in self._pieces.items() if r.ground]
        for frame in grounds[1:]:
            self._merge_ground(grounds[0], frame)
        for a, b in self._imported.case.connections["frame"]:
            for frame in (a, b):
                if frame not in self._pieces:
                    raise NotMapped(f"multibody: connector {frame} is not known")
            self._merge(a, b)

    def _joined(self, frame: str) -> bool:
        return any(frame in pair for pair in self._imported.case.connections["frame"])

    def _frames(self, name: str, kind: str) -> list[str]:
        ends = {
            "World": ("frame_b",), "Fixed": ("frame_b",), "Body": ("frame_a",), "PointMass": ("frame_a",),
            "Rotor1D": ("frame_a",), "Mounting1D": ("frame_a",), "BevelGear1D": ("frame_a",),
            "WorldTorque": ("frame_b",), "GearConstraint": ("bearing", "frame_a", "frame_b"),
        }.get(kind, ("frame_a", "frame_b"))  # fmt: skip
        if kind in SENSORS and kind.startswith("Absolute"):
            ends = ("frame_a",)
        return [f"{name}.{end}" for end in ends]

    def _link(self, kind: str, p: Parameters) -> Pose:
        """frame_b as seen from frame_a."""
        if kind not in ("FixedTranslation", "FixedRotation") and not kind.startswith("Body"):
            return HERE
        r = np.array(p("r", [0.0, 0.0, 0.0]), dtype=np.float64)
        if kind != "FixedRotation":
            return np.eye(3), r
        word = str(p("rotationType", "RotationAxis")).rpartition(".")[2]
        axis, angle = p("n", [1.0, 0.0, 0.0]), p("angle", 0.0)
        sequence, angles = p("sequence", [1, 2, 3]), p("angles", [0.0, 0.0, 0.0])
        n_x, n_y = p("n_x", [1.0, 0.0, 0.0]), p("n_y", [0.0, 1.0, 0.0])
        if word == "RotationAxis":
            return turn(axis, angle), r
        if word == "PlanarRotationSequence":
            rotation = np.eye(3)
            for k, each in zip(sequence, angles, strict=True):
                rotation = rotation @ turn(np.eye(3)[int(k) - 1], each)
            return rotation, r
        if word == "TwoAxesVectors":
            e_x = unit(n_x)
            e_z = unit(np.cross(e_x, unit(n_y)))
            return np.stack([e_x, np.cross(e_z, e_x), e_z], axis=1), r
        raise NotMapped(f"{p.label} {p.name}: rotationType {word} is not known")

    def _merge(self, a: str, b: str) -> None:
        """Frames a and b coincide: their pieces become one."""
        first, second = self._pieces[a], self._pieces[b]
        if first is second:
            return
        if second.ground and not first.ground:
            first, second, a, b = second, first, b, a
        if first.ground and second.ground:
            raise NotMapped(f"multibody: frames {a} and {b} of the ground are joined through different places")
        (Ra, ra), (Rb, rb) = first.poses[a], second.poses[b]
        R = Ra @ Rb.T
        self._take(first, second, (R, ra - R @ rb))

    def _merge_ground(self, a: str, b: str) -> None:
        """All places of the ground are one piece; their poses are absolute."""
        if self._pieces[a] is not self._pieces[b]:
            self._take(self._pieces[a], self._pieces[b], HERE)

    def _take(self, first: Rigid, second: Rigid, seen: Pose) -> None:
        R, r = seen
        for frame, (Rf, rf) in second.poses.items():
            first.poses[frame] = (R @ Rf, r + R @ rf)
            self._pieces[frame] = first

    # --- joints --------------------------------------------------------------------------------------------------
    def _revolute(self, name: str, p: Parameters) -> None:
        """Positive angle: frame_b turns about n relative to frame_a; one of the two must be at rest."""
        n = unit(p("n", [0.0, 0.0, 1.0]))
        a, b = f"{name}.frame_a", f"{name}.frame_b"
        if self._pieces[a].ground:
            self._hinge(name, b, n, self._pieces[b], name)
        elif self._pieces[b].ground:
            # the body on frame_a turns by -phi: about -n by phi
            self._hinge(name, a, -n, self._pieces[a], name)
        else:
            other = self._pieces[a].shaft or self._pieces[b].shaft
            carried = f" turns with the body on {other}" if other else " is not at rest"
            raise NotMapped(f"multibody/Revolute {name}: its axis{carried} (moving carrier); {MOVING}")
        shaft = self._pieces[b if self._pieces[a].ground else a].shaft
        self._imported.names[name] = str(shaft)
        self._imported.connectors[f"{name}.axis"] = f"{shaft}.flange_a"

    def _gear_constraint(self, name: str, p: Parameters) -> None:
        if not self._pieces[f"{name}.bearing"].ground:
            raise NotMapped(f"multibody/GearConstraint {name}: its bearing is not at rest (moving carrier); {MOVING}")
        shafts = []
        for side in ("a", "b"):
            n = unit(p(f"n_{side}", [1.0, 0.0, 0.0]))
            p(f"r_{side}", None)
            frame = f"{name}.frame_{side}"
            self._hinge(f"{name}_{side}", frame, n, self._pieces[frame], f"{name}.{side}")
            shafts.append(str(self._pieces[frame].shaft))
            for quantity in ("phi", "w", "a"):
                self._imported.quantities[f"{name}.{quantity}_{side}"] = Quantity((f"{shafts[-1]}.{quantity}",))
        gear = self._imported.add(name, IdealGear(ratio=p("ratio")))
        self._imported.driveline.connect(f"{shafts[0]}.flange_b", f"{gear}.flange_a")
        self._imported.driveline.connect(f"{gear}.flange_b", f"{shafts[1]}.flange_a")

    def _hinge(self, joint: str, frame: str, n: Vector, piece: Rigid, label: str) -> None:
        """The piece turns about n (in the axes of `frame`) through the origin of `frame`; the ground is at rest."""
        if piece.ground:
            raise NotMapped(f"multibody: joint {joint} connects the ground with the ground")
        if piece.shaft is not None:
            raise NotMapped(f"multibody: the body on {frame} has two bearings (closed loop of joints)")
        rotation, point = piece.poses[frame]
        piece.axis, piece.point = rotation @ n, point
        piece.shaft = self._imported.add(label, Inertia(J=0.0))

    # --- inertia and gravity -------------------------------------------------------------------------------------
    def _gravity(self) -> Vector:
        """Acceleration of gravity in the axes of the world."""
        for kind, p in self._parts.values():
            if kind == "World":
                p("driveTrainMechanics3D", True), p("enableAnimation", None), p("label1", None), p("label2", None)
                if str(p("gravityType", "UniformGravity")).rpartition(".")[2] not in ("UniformGravity", "NoGravity"):
                    raise NotMapped("multibody/World: only uniform gravity is mapped")
                none = str(p("gravityType", "")).endswith("NoGravity")
                return 0.0 * np.zeros(3) if none else float(p("g", 9.81)) * unit(p("n", [0.0, -1.0, 0.0]))
        return np.zeros(3)

    def _bodies(self) -> list[tuple[str, float, Vector, NDArray[np.float64]]]:
        """(frame, mass, centre, inertia tensor) of all bodies, in the axes of their frame_a."""
        return [
            (f"{name}.frame_a", *body_of(kind, p))
            for name, (kind, p) in self._parts.items()
            if kind.startswith("Body") or kind == "PointMass"
        ]

    def _inertia(
        self, piece: Rigid, bodies: list[tuple[str, float, Vector, NDArray[np.float64]]], gravity: Vector
    ) -> None:
        """J about the axis; gravity must have no lever."""
        J, mass, moment = 0.0, 0.0, np.zeros(3)
        for frame, m, centre, tensor in bodies:
            if frame not in piece.poses or piece.ground:
                continue
            R, _ = piece.poses[frame]
            lever = piece.at(frame, centre) - piece.point
            across = lever - (lever @ piece.axis) * piece.axis
            J += float(piece.axis @ R @ tensor @ R.T @ piece.axis) + m * float(across @ across)
            mass, moment = mass + m, moment + m * across
            for k in range(3):
                key = f"{frame.removesuffix('.frame_a')}.w_a[{k + 1}]"
                factor = float((R.T @ piece.axis)[k])
                self._imported.quantities[key] = Quantity((f"{piece.shaft}.w",), factor)
        if piece.ground or (piece.shaft is None and mass == 0.0 and J == 0.0):
            return
        if piece.shaft is None:
            some = sorted(piece.poses)[0]
            raise NotMapped(
                f"multibody: the body with {some} is on no revolute joint at rest (it moves freely); {MOVING}"
            )
        # the component of gravity along the axis is the same at rest and turned; across it, it must have no lever
        along = self._axis_in_world(piece)
        pulled = float(np.linalg.norm(gravity - (gravity @ along) * along))
        if pulled * float(np.linalg.norm(moment)) > SMALL * max(J, SMALL):
            raise NotMapped(
                f"multibody: gravity turns the body on {piece.shaft}: its centre of mass is "
                f"{np.linalg.norm(moment) / mass:g} m off the axis (a pendulum: the torque depends on the angle)"
            )
        self._imported.driveline.replace(str(piece.shaft), J=J)

    def _axis_in_world(self, piece: Rigid) -> Vector:
        """The axis as the ground sees it: through the joint, whose other frame is at rest."""
        for name, (kind, p) in self._parts.items():
            if kind == "Revolute":
                n = unit(p("n", [0.0, 0.0, 1.0]))
                for own, other, sense in (("frame_b", "frame_a", 1.0), ("frame_a", "frame_b", -1.0)):
                    if self._pieces[f"{name}.{own}"] is piece and self._pieces[f"{name}.{other}"].ground:
                        return sense * self._pieces[f"{name}.{other}"].poses[f"{name}.{other}"][0] @ n
            if kind == "GearConstraint":
                for side in ("a", "b"):
                    if self._pieces[f"{name}.frame_{side}"] is piece:
                        rotation = self._pieces[f"{name}.bearing"].poses[f"{name}.bearing"][0]
                        return rotation @ unit(p(f"n_{side}", [1.0, 0.0, 0.0]))
        raise NotMapped(f"multibody: the body on {piece.shaft} has no joint")

    # --- one-dimensional parts on frames, torques ------------------------------------------------------------------
    def _on_ground(self, name: str, kind: str, p: Parameters) -> None:
        """Rotor1D, Mounting1D, BevelGear1D whose carrier is at rest."""
        if not self._pieces[f"{name}.frame_a"].ground:
            raise NotMapped(f"multibody/{kind} {name}: its carrier moves; {MOVING}")
        for ignored in ("n", "n_a", "n_b", "exact", "nominalTorque"):
            p(ignored, None)
        made: Any
        if kind == "Rotor1D":
            made = Inertia(J=p("J"))
        elif kind == "Mounting1D":
            made = Fixed(phi0=p("phi0", 0.0))
        else:
            made = IdealGear(ratio=p("ratio"))
        own = self._imported.add(name, made)
        if kind == "Mounting1D":
            self._imported.connectors[f"{name}.flange_b"] = f"{own}.flange"

    def _torque(self, name: str, kind: str, p: Parameters) -> None:
        """+T on the body of frame_b, -T on that of frame_a: their components along the axes."""
        word = _axes_of(kind, p)
        ends = [("frame_b", 1.0), ("frame_a", -1.0)] if kind == "Torque" else [("frame_b", 1.0)]
        if word not in ("world", "frame_a", "frame_b", "frame_resolve"):
            raise NotMapped(f"multibody/{kind} {name}: resolveInFrame {word} is not mapped")
        for end, sense in ends:
            piece = self._pieces[f"{name}.{end}"]
            if piece.ground:
                continue
            if piece.shaft is None:
                raise NotMapped(f"multibody/{kind} {name}: {end} is on a body without a joint at rest; {MOVING}")
            factors = sense * self._seen_from(piece, name, word)
            torque = self._imported.add(f"{name}.{end}", Torque())
            self._imported.driveline.connect(f"{torque}.flange", f"{piece.shaft}.flange_a")
            for k in range(3):
                self._imported.ports.setdefault(f"{name}.torque[{k + 1}]", [])
                if abs(factors[k]) > SMALL:
                    self._imported.ports[f"{name}.torque[{k + 1}]"].append((f"{torque}.tau", float(factors[k])))

    def _seen_from(self, piece: Rigid, name: str, word: str) -> Vector:
        """The axis of a body in the axes the torque is given in; these must not turn it."""
        along = self._axis_in_world(piece)
        if word == "world":
            return along
        frame = f"{name}.{word}"
        reference = self._pieces[frame]
        if reference.ground:
            seen: Vector = reference.poses[frame][0].T @ along
            return seen
        if reference is not piece and abs(abs(along @ self._axis_in_world(reference)) - 1.0) > SMALL:
            raise NotMapped(f"multibody: torque {name} is given in axes that turn about another axis than its body's")
        own = reference.poses[frame][0].T @ reference.axis
        return own if along @ self._axis_in_world(reference) > 0.0 else -own
