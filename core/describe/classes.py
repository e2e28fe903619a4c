"""Dataclasses that are completed when they are first used.

`dataclasses.dataclass` writes and compiles up to six functions for a class, which takes 0.5 ms with Python 3.11. A
command imports about 400 classes and uses a third of them. This decorator therefore leaves the class as it is written.
It calls `dataclasses.dataclass` when one of the attributes that this makes is looked up: `__init__` by an object,
`__dataclass_fields__` by `fields`, `is_dataclass` or a subclass.
"""

from __future__ import annotations

import dataclasses
from _thread import RLock
from typing import TYPE_CHECKING, Any

#: what `dataclasses.dataclass` makes, and what it makes for frozen classes only
_MADE = "__dataclass_fields__ __dataclass_params__ __match_args__ __init__ __repr__ __eq__ __hash__ __replace__".split()
_MADE_FROZEN = ["__setattr__", "__delattr__"]
#: two threads may use a class for the first time at once
_LOCK = RLock()


class _Later:
    """In place of an attribute of a class that is not complete: completes the class, and gives the attribute."""

    def __init__(self, name: str, complete: Any) -> None:
        self._name, self._complete = name, complete

    def __get__(self, instance: Any, owner: Any) -> Any:
        with _LOCK:
            self._complete()
        return getattr(owner if instance is None else instance, self._name)


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(kind=None, /, **options):
        """As `dataclasses.dataclass`, but the class is completed when it is first used."""
        if kind is None:
            return lambda kind: dataclass(kind, **options)
        if options.get("slots"):
            # `slots` replaces the class by another one
            return dataclasses.dataclass(kind, **options)
        declared = {name: value for name, value in vars(kind).items() if isinstance(value, dataclasses.Field)}
        made = [*_MADE, *(_MADE_FROZEN if options.get("frozen") else ())]
        placed = [name for name in made if name not in vars(kind)]

        def complete() -> None:
            """Put the class back as it was written, and make it a dataclass; once."""
            if placed:
                while placed:
                    delattr(kind, placed.pop())
                for name, value in declared.items():
                    setattr(kind, name, value)
                dataclasses.dataclass(kind, **options)

        for name in (*placed, *declared):
            setattr(kind, name, _Later(name, complete))
        return kind
