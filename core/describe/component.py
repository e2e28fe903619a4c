"""What a component is: a frozen set of parameters, flanges, inputs, and what it contributes to the equations.

A component knows neither its name nor its neighbours; both come with the `Builder` it contributes to.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError, TableError, UnknownKeyError, closest
from torqueloop.core.describe.flange import Flange
from torqueloop.core.describe.params import normal, params_of

if TYPE_CHECKING:
    from torqueloop.core.describe.builder import Builder
    from torqueloop.core.describe.vocabulary import InputSignal


@dataclass(frozen=True, kw_only=True)
class Component:
    """Base of all components. Subclasses are frozen dataclasses whose fields are made by `param` or `curve`."""

    #: flange name -> Flange
    flanges: ClassVar[Mapping[str, Flange]] = {}

    def __new__(cls, *positional: Any, **values: Any) -> Self:
        """UnknownKeyError, a ConfigError, for what is no parameter of this kind (or is given without its name)."""
        known = [f.name for f in dataclasses.fields(cls) if f.init]
        allowed = ", ".join(known) or "no parameters"
        if len(positional) > sum(f.init and not f.kw_only for f in dataclasses.fields(cls)):
            raise UnknownKeyError("{value} is given without the name of its parameter", table=cls.__name__,
                                  value=positional[0], allowed=allowed)  # fmt: skip
        for key in values:
            if key not in known:
                near = closest(key, known)
                raise UnknownKeyError("unknown parameter {key}", table=cls.__name__, key=key, value=values[key],
                                      allowed=allowed, hint=near and f"did you mean {near!r}?")  # fmt: skip
        return super().__new__(cls)

    def __post_init__(self) -> None:
        """Bring every value to its one form and check its range, so that equal components are equal objects."""
        for name, p in params_of(type(self)).items():
            value = getattr(self, name)
            try:
                object.__setattr__(self, name, normal(name, p, value))
            except TableError as error:
                error.key = error.key or name
                raise error.located(table=type(self).__name__) from None
            except ConfigError as error:
                raise error.located(table=type(self).__name__) from None
        try:
            self.check()
        except ConfigError as error:
            raise error.located(table=type(self).__name__) from None

    @property
    def kind(self) -> str:
        """The word used for it in files."""
        return type(self).__name__

    def check(self) -> None:
        """Rules between parameters; raises ConfigError."""

    def contribute(self, b: Builder) -> None:
        """Hand joints, gear rows, inertias, force elements, inputs and outputs to the builder."""
        raise NotImplementedError

    def default_inputs(self) -> Mapping[str, InputSignal]:
        """Signals the component itself gives to its inputs (short input name -> signal)."""
        return {}
