"""Frames joined to carriers, and what follows from that: torques on rotors, moments on carriers, absolute speeds.

Frames that are joined are fixed to one carrier, which needs exactly one reference: a component that says how the
carrier moves. For a carrier whose motion is given (angular velocity omega, acceleration z, along its own axes) a rotor
of inertia J about n with the speed w relative to it moves as

    J*dw/dt = sum of torques - J*n.z                       (a torque driven by inputs: the matrices stay constant)

and the carrier gets, besides the support torques,

    -(omega x J*w*n) + J*(n.z)*n

so that with all supports on the carrier it is -(J*n*dw/dt + omega x J*w*n): the change of the rotor's spin. All these
are outputs, sums of reactions, speeds and inputs. C. Schweiger, M. Otter: Modelling 3D Mechanical Effects of 1D
Powertrains, 3rd Int. Modelica Conference 2003, eq. (3), (5); listing 7 there counts the torque on the rotor's flanges
among the moments of the rotor and again among those of the supports, which Modelica's library has corrected since.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from torqueloop.core.compile.bodies import along, settle_bodies
from torqueloop.core.compile.joints import settle_joints
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.errors import (
    CompileError,
    FloatingFlangeError,
    NoReferenceError,
    OverconstrainedError,
    UnknownNameError,
    did_you_mean,
)
from torqueloop.core.describe.flange import FRAME, ROTATIONAL
from torqueloop.core.describe.frame_parts import BodyPart, CarrierPart, MomentPart, RotorPart, Term
from torqueloop.core.describe.kernel_numbers import OUT_REACTION, OUT_SUM, OUT_TORQUE_WORK
from torqueloop.core.describe.naming import natural
from torqueloop.core.describe.parts import Output, Parts, Reaction, TorqueSource
from torqueloop.core.describe.units import SYMBOLS
from torqueloop.core.describe.vocabulary import JOINT_OUTPUTS

AXES = ("x", "y", "z")
#: along x, y, z
_Terms = tuple[list[Term], list[Term], list[Term]]


def settle_frames(components: Mapping[str, Component], sets: Iterable[Iterable[str]], parts: Parts) -> None:
    """Give every part that is fixed to a carrier what follows from the carrier's motion."""
    frames = {f"{n}.{f}" for n, c in components.items() for f, s in c.flanges.items() if s.domain == FRAME}
    if not frames:
        settle_joints(sets, parts, {})
        return
    needed = {
        f"{n}.{f}" for n, c in components.items() for f, s in c.flanges.items() if s.domain == FRAME and s.required
    }
    on = _carriers(frames, sets, parts, needed)
    _mount(components, parts)
    settle_joints(sets, parts, on)
    settle_bodies(parts, {frame: body for frame, body in on.items() if isinstance(body, BodyPart)})
    _settle_given(parts, {frame: c for frame, c in on.items() if isinstance(c, CarrierPart)})
    _absolute_speeds(parts, on)


def _settle_given(parts: Parts, carrier: Mapping[str, CarrierPart]) -> None:
    """Torques on the rotors of carriers whose motion is given, moments on these carriers."""
    moments: dict[str, _Terms] = {c.frame: ([], [], []) for c in parts.frames.carriers}
    for rotor in parts.frames.rotors:
        if rotor.frame not in carrier:
            continue
        own = carrier[rotor.frame]
        _drag_along(parts, rotor, own)
        for k in range(3):
            moments[own.frame][k].extend(_of_rotor(rotor, own, k))
    for moment in parts.frames.moments:
        for k in range(3):
            if moment.direction[k] and moment.frame in carrier:
                moments[carrier[moment.frame].frame][k].append(Term(moment.direction[k], reaction=moment.reaction))
    forces = _shaft_forces(parts, carrier, moments)
    for own in parts.frames.carriers:
        for axis, terms in zip(AXES, moments[own.frame], strict=True):
            _sum(parts, f"{own.owner}.t_{axis}", "torque", terms)
        if own.pose or own.frame in forces:
            for axis, terms in zip(AXES, forces.get(own.frame, ([], [], [])), strict=True):
                _sum(parts, f"{own.owner}.f_{axis}", "force", terms)
    holding = [(p.owner, p.frame) for p in parts.frames.hinges] + [(p.owner, p.frame) for p in parts.frames.bushings]
    holding += [(p.owner, p.frame) for p in parts.frames.leaving]
    for owner, frame in holding:
        if frame in carrier:
            raise CompileError(
                f"{owner!r} goes with a RigidBody; the motion of {carrier[frame].owner!r} is given", [owner]
            )


def _shaft_forces(parts: Parts, carrier: Mapping[str, CarrierPart], moments: dict[str, _Terms]) -> dict[str, _Terms]:
    """Moments of joint shafts between carriers that move against each other; by frame of the carrier their forces."""
    forces: dict[str, _Terms] = {}
    for wrench in parts.frames.wrenches:
        frame = carrier[wrench.frame].frame
        first = wrench.joint * JOINT_OUTPUTS + 12 + 6 * wrench.end
        for k in range(3):
            moments[frame][k].append(Term(1.0, joint=first + k))
            forces.setdefault(frame, ([], [], []))[k].append(Term(1.0, joint=first + 3 + k))
    return forces


def _absolute_speeds(parts: Parts, on: Mapping[str, CarrierPart | BodyPart]) -> None:
    for speed in parts.frames.speeds:
        own = on[speed.frame]
        if isinstance(own, BodyPart):
            turned = [Term(1.0, form=along(speed.n, own.w))]
        else:
            turned = [Term(n, input=i) for n, i in zip(speed.n, own.w, strict=False) if n]
        _sum(parts, f"{speed.owner}.{speed.name}", "angular_velocity", [Term(1.0, form=speed.form), *turned])


def _carriers(
    frames: set[str], sets: Iterable[Iterable[str]], parts: Parts, needed: set[str]
) -> dict[str, CarrierPart | BodyPart]:
    """Frame -> the carrier it is fixed to; exactly one in every set of joined frames."""
    references: dict[str, CarrierPart | BodyPart] = {carrier.frame: carrier for carrier in parts.frames.carriers}
    references |= {body.frame: body for body in parts.frames.bodies}
    found: dict[str, CarrierPart | BodyPart] = {}
    for group in sets:
        joined = sorted((f for f in group if f in frames), key=natural)
        held = [references[f] for f in joined if f in references]
        if len(held) > 1:
            owners = [c.owner for c in held]
            raise OverconstrainedError(
                f"the motion of joined frames is given more than once, by {', '.join(owners)}: " + " = ".join(joined),
                owners,
            )
        if joined and not held:
            raise NoReferenceError(
                "joined frames without a reference: "
                + " = ".join(joined)
                + "; join a World, a MovingCarrier or a RigidBody",
                sorted({f.rpartition(".")[0] for f in joined}, key=natural),
            )
        found |= dict.fromkeys(joined, held[0]) if held else {}
    for frame in sorted(needed - found.keys(), key=natural):
        owner = frame.rpartition(".")[0]
        raise FloatingFlangeError(f"frame {frame} is joined to nothing", [owner])
    return found


def _mount(components: Mapping[str, Component], parts: Parts) -> None:
    """Rotors and support torques of whole drivelines on a carrier."""
    taken: dict[str, str] = {rotor.owner: rotor.owner for rotor in parts.frames.rotors}
    for part in parts.frames.mounted:
        names = _named(components, part.owner, part.names)
        turning = {
            f"{name}.{f}" for name in names for f, s in components[name].flanges.items() if s.domain == ROTATIONAL
        }
        bent = sorted({joint.owner for joint in parts.joints.shafts} & set(names), key=natural)
        if bent:
            raise CompileError(
                f"the shafts of {bent[0]!r} turn about different axes: name the parts of {part.owner!r} without it",
                [part.owner, *bent],
            )
        for inertia in parts.inertias:
            if not turning.issuperset(inertia.form.terms) or taken.get(inertia.owner) == inertia.owner:
                continue
            if taken.setdefault(inertia.owner, part.owner) != part.owner:
                other = taken[inertia.owner]
                raise OverconstrainedError(
                    f"{inertia.owner!r} is on a carrier twice, by {other!r} and {part.owner!r}", [other, part.owner]
                )
            parts.frames.rotors.append(
                RotorPart(inertia.owner, part.frame, inertia.form, inertia.J, part.n, part.exact)
            )
        parts.reactions.append(Reaction(part.owner, -1, 1.0, -1, 0.0, frozenset(turning)))
        tau = len(parts.reactions) - 1
        parts.outputs.append(Output(f"{part.owner}.tau", SYMBOLS["torque"], OUT_REACTION, None, tau, 1.0))
        parts.frames.moments.append(MomentPart(part.owner, part.frame, tau, part.n))


def _named(components: Mapping[str, Component], owner: str, names: str) -> list[str]:
    """Components that a text names; each of its words must fit one."""
    found: set[str] = set()
    for word in names.split():
        fitting = {name for name in components if fnmatchcase(name, word)} - {owner}
        if not fitting:
            raise UnknownNameError(
                f"there is no component {word!r}", table=f"components.{owner}", key="parts", value=word,
                hint=did_you_mean(word, components),
            )  # fmt: skip
        found |= fitting
    return sorted(found, key=natural)


def _drag_along(parts: Parts, rotor: RotorPart, own: CarrierPart) -> None:
    """-J*n.z on an exact rotor, with its work as outputs."""
    if not rotor.exact:
        return
    for axis, n, z in zip(AXES, rotor.n, own.z, strict=False):
        if n:
            parts.torques.append(TorqueSource(rotor.owner, rotor.form, z, -rotor.J * n, 0.0))
            index = len(parts.torques) - 1
            name = f"{rotor.owner}.work_{axis}"
            parts.outputs.append(Output(name, SYMBOLS["energy"], OUT_TORQUE_WORK, None, index, 1.0, "torque"))


def _of_rotor(rotor: RotorPart, own: CarrierPart, k: int) -> list[Term]:
    """Component k of -(omega x J*w*n) + J*(n.z)*n."""
    terms = []
    if own.w:
        i, j = (k + 1) % 3, (k + 2) % 3
        # (omega x n)_k = omega_i*n_j - omega_j*n_i
        for n, omega, sign in ((rotor.n[j], own.w[i], -1.0), (rotor.n[i], own.w[j], 1.0)):
            if n:
                terms.append(Term(sign * rotor.J * n, form=rotor.form, input=omega))
    if rotor.exact:
        for n, z in zip(rotor.n, own.z, strict=False):
            if n * rotor.n[k]:
                terms.append(Term(rotor.J * n * rotor.n[k], input=z))
    return terms


def _sum(parts: Parts, name: str, dimension: str, terms: list[Term]) -> None:
    """An output that is a sum of terms (none: 0)."""
    parts.sums.append(tuple(terms) or (Term(0.0),))
    parts.outputs.append(Output(name, SYMBOLS[dimension], OUT_SUM, None, len(parts.sums) - 1, 1.0))
