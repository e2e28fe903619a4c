"""What components of both domains share: a law stands once, as a class that the kinds of both are made from.

A kind names its flanges and those of its parameters that have a letter of the domain in their names (phi_rel0, s_rel0);
a translational one has `Sliding` in front. Everything else is the law's: parameters (`shared`), checks, what it
contributes, signals of its own inputs. Domains as data: core/describe/motion.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.flange import HEAT_PORT, Flange
from torqueloop.core.describe.motion import ROTATION, TRANSLATION, Motion
from torqueloop.core.describe.params import shared

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder
    from torqueloop.core.describe.vocabulary import Form


@dataclass(frozen=True, kw_only=True)
class OfMotion(Component):
    """Base of the laws: rotation, unless a kind says otherwise."""

    motion: ClassVar[Motion] = ROTATION

    def value(self, name: str) -> Any:
        """The parameter whose name has the letter of the domain in it: "{phi}_rel0"."""
        return getattr(self, self.motion.text(name))

    def input(self, b: Builder, name: str, dimension: str) -> int:
        """An input, named and measured as rotation has it."""
        return b.input(self.motion.text(name), self.motion.dimension(dimension))

    def start(self, b: Builder, quantity: str, form: Form, name: str) -> None:
        """The start value of "phi" or "w" that a parameter gives."""
        b.initial(quantity, form, self.value(name), self.motion.text(name))

    def between(self, b: Builder) -> Form:
        """w_b - w_a, with its outputs."""
        relative = b.w("flange_b") - b.w("flange_a")
        b.relative_outputs(relative, self.motion.domain)
        return relative


@dataclass(frozen=True, kw_only=True)
class Sliding(OfMotion):
    """In front of a law: the same for what slides."""

    motion: ClassVar[Motion] = TRANSLATION


@dataclass(frozen=True, kw_only=True)
class OnSupport(OfMotion):
    """What acts between one flange and the support."""

    def speed(self, b: Builder) -> Form:
        """Relative to the support."""
        return b.w("flange") - b.w("support")


def _one(motion: Motion) -> Mapping[str, Flange]:
    return {"flange": motion.flange}


def _two(motion: Motion) -> Mapping[str, Flange]:
    return {"flange_a": motion.flange, "flange_b": motion.flange}


def _on_support(motion: Motion) -> Mapping[str, Flange]:
    return {"flange": motion.flange, "support": motion.support}


def _through_support(motion: Motion) -> Mapping[str, Flange]:
    """A part that passes through a support which it rubs on."""
    return {"flange_a": motion.open, "flange_b": motion.open, "support": motion.support, "heatPort": HEAT_PORT}


ONE_SHAFT, ONE_PART = _one(ROTATION), _one(TRANSLATION)
TWO_SHAFTS, TWO_PARTS = _two(ROTATION), _two(TRANSLATION)
SHAFT_ON_SUPPORT, PART_ON_SUPPORT = _on_support(ROTATION), _on_support(TRANSLATION)
SHAFT_IN_SUPPORT, PART_IN_SUPPORT = _through_support(ROTATION), _through_support(TRANSLATION)


def start_position(of: str = "") -> Any:
    """Parameter: where a part is at the start; not given without it."""
    return shared("start {angle}" + of, "angle", None)


def start_speed(of: str = "") -> Any:
    """Parameter: its speed there."""
    return shared("start speed" + of, "angular_velocity", None)
