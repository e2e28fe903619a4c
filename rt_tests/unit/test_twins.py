"""Rotation and translation: a law stands once, the domain is data (core/describe/motion.py)."""

from __future__ import annotations

import dataclasses
import inspect

import pytest

from torqueloop.core.analyse.catalogue import parts_of
from torqueloop.core.components import KINDS, Component
from torqueloop.core.describe.flange import ANY, THERMAL, TRANSLATIONAL
from torqueloop.core.describe.motion import ROTATION, TRANSLATION
from torqueloop.core.describe.params import Param, params_of

#: kind that slides -> the one that turns
TWINS = {
    "TranslationalFixed": "Fixed", "Mass": "Inertia", "Rod": "Disc", "TranslationalSpring": "Spring",
    "TranslationalDamper": "Damper", "TranslationalSpringDamper": "SpringDamper", "TranslationalHardStop": "HardStop",
    "TranslationalBrake": "Brake", "SupportFriction": "BearingFriction", "Force": "Torque", "Force2": "Torque2",
    "ForceStep": "TorqueStep", "ConstantForce": "ConstantTorque",
    "LinearSpeedDependentForce": "LinearSpeedDependentTorque",
    "QuadraticSpeedDependentForce": "QuadraticSpeedDependentTorque",
    "InverseSpeedDependentForce": "InverseSpeedDependentTorque", "SignForce": "SignTorque",
    "EddyCurrentForce": "EddyCurrentTorque", "TranslationalMove": "Move", "TranslationalPosition": "Position",
    "TranslationalSpeed": "Speed", "TranslationalAccelerate": "Accelerate",
    "TranslationalConstantSpeed": "ConstantSpeed", "PositionSensor": "AngleSensor",
    "TranslationalSpeedSensor": "SpeedSensor", "TranslationalAccSensor": "AccSensor", "ForceSensor": "TorqueSensor",
    "TranslationalPowerSensor": "PowerSensor", "TranslationalMultiSensor": "MultiSensor",
    "RelPositionSensor": "RelAngleSensor", "TranslationalRelSpeedSensor": "RelSpeedSensor",
    "TranslationalRelAccSensor": "RelAccSensor", "TranslationalInitializeFlange": "InitializeFlange",
    "TranslationalRelativeStates": "RelativeStates",
}  # fmt: skip
#: kinds that slide and have no twin
ALONE = {
    "ElastoGap": "one side only, with an exponent; ElastoBacklash has two",
    "MassWithStopAndFriction": "a Mass, a stop and a friction of the laws above in one",
    "CarResistance": "of cars", "CarCoastDown": "of cars", "RoadLoad": "of cars",
}  # fmt: skip
#: parameters whose law is the same and whose measure is not: faces against a radius, a length against an angle
OWN = {"Mass": {"L"}, "Rod": {"L"}, "TranslationalBrake": {"cgeo"}}
#: what a component is made of
METHODS = ("contribute", "check", "default_inputs")


def pairs() -> list[tuple[type[Component], type[Component]]]:
    return [(KINDS[turning], KINDS[sliding]) for sliding, turning in TWINS.items()]


def test_every_kind_that_slides_has_a_twin_or_a_reason() -> None:
    slides = {
        name for name, kind in KINDS.items() if {f.domain for f in kind.flanges.values()} - {THERMAL} == {TRANSLATIONAL}
    }
    assert slides == set(TWINS) | set(ALONE)
    assert len(set(TWINS.values())) == len(TWINS)


@pytest.mark.parametrize("turning, sliding", pairs(), ids=list(TWINS))
def test_twins_are_the_same_code(turning: type[Component], sliding: type[Component]) -> None:
    for method in METHODS:
        assert getattr(turning, method) is getattr(sliding, method), f"{sliding.__name__}.{method} is a law of its own"
    for kind in (turning, sliding):
        written = {n for n, v in vars(kind).items() if inspect.isfunction(v) and not n.startswith("__")}
        assert not written, f"{kind.__name__} has code of its own"
    assert (turning.motion, sliding.motion) == (ROTATION, TRANSLATION)  # type: ignore[attr-defined]


@pytest.mark.parametrize("turning, sliding", pairs(), ids=list(TWINS))
def test_twins_declare_the_same_parameters(turning: type[Component], sliding: type[Component]) -> None:
    """Same order, ranges, defaults and forms; names and dimensions as the domain has them."""
    own = OWN.get(sliding.__name__, set())
    there = {n: p for n, p in params_of(sliding).items() if n not in own}
    here = {n: p for n, p in params_of(turning).items() if n not in own and not (own == {"L"} and n == "deltaPhi")}
    assert len(here) == len(there)
    letters = {**TRANSLATION.words, "": ""}
    for (name, p), (twin, q) in zip(here.items(), there.items(), strict=True):
        assert twin == name or any(name.replace(a, b) == twin for a, b in letters.items() if a), (name, twin)
        assert ranges(p) == ranges(q), name
        assert TRANSLATION.dimension(p.dimension) == q.dimension
        assert tuple(TRANSLATION.dimension(c) for c in p.columns) == q.columns
        assert not p.shared and not q.shared and "{" not in p.doc + q.doc
    # whatever a law declares without a value is declared by its kinds
    for kind in (turning, sliding):
        assert {f.name for f in dataclasses.fields(kind)} == set(params_of(kind))


def ranges(p: Param) -> tuple[object, ...]:
    """What a value is held to."""
    return (p.default, p.low, p.high, p.above, p.form, p.choices, len(p.columns))


@pytest.mark.parametrize("turning, sliding", pairs(), ids=list(TWINS))
def test_twins_have_the_same_flanges_and_outputs(turning: type[Component], sliding: type[Component]) -> None:
    def places(kind: type[Component]) -> dict[str, tuple[object, ...]]:
        return {n: (f.required, f.support, f.domain == THERMAL) for n, f in kind.flanges.items() if n != "centre"}

    assert places(turning) == places(sliding)
    assert {f.domain for f in turning.flanges.values()} & {TRANSLATIONAL} == set()
    assert ANY not in {f.domain for f in sliding.flanges.values()}
    here, there = parts_of(turning), parts_of(sliding)
    assert [(o.kind, o.group, o.gain) for o in here.outputs] == [(o.kind, o.group, o.gain) for o in there.outputs]
    assert len(here.inputs) == len(there.inputs)
