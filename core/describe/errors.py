"""All errors of torqueloop that a user can cause: one small tree.

`ConfigError`: a value in a file or an argument is wrong; it names file, table, key, value and what is allowed.
`CompileError`: the values are fine one by one, but the driveline they describe is not; it names the components.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import PurePath
from typing import Any

#: so many known words are listed as they are
MANY = 40


def of_file(file: object, text: str) -> str:
    """A message about a file: it begins with the file. file: None or empty where there is none."""
    return f"{file}: {text}" if file else text


class TorqueloopError(Exception):
    """Root of all errors raised on purpose."""


class MissingLibraryError(TorqueloopError):
    """Something needs a library that is not installed."""


class ConfigError(TorqueloopError):
    """A wrong value in a configuration file or argument.

    The text is put together from its parts when it is asked for, so that a component can raise it without knowing
    its file and the reader of the file adds its position with `located`. It begins with the file, as the messages of
    compilers do: "car.toml: mass_kg = -1 is out of range in [body]; allowed: > 0".
    """

    def __init__(
        self,
        problem: str,
        *,
        file: str | None = None,
        table: str | None = None,
        key: str | None = None,
        value: Any = None,
        allowed: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(problem)
        #: what is wrong; "{key}" and "{value}" stand for the attributes below
        self.problem = problem
        #: path of the file, as the user gave it
        self.file = file
        #: dotted name of the TOML table, e.g. "components.S12"
        self.table = table
        #: key in that table, with its unit
        self.key = key
        #: the offending value
        self.value = value
        #: the allowed range or the allowed words
        self.allowed = allowed
        #: what to write instead
        self.hint = hint

    def located(self, *, file: str | None = None, table: str | None = None, key: str | None = None) -> ConfigError:
        """Add the place where it happened (what is known already about the file stays) and return self."""
        self.file = self.file or file
        self.table = table or self.table
        self.key = key or self.key
        return self

    def __str__(self) -> str:
        text = self.problem.replace("{key}", str(self.key)).replace("{value}", repr_short(self.value))
        if self.table is not None:
            text += f" in [{self.table}]"
        if self.allowed is not None:
            text += f"; allowed: {self.allowed}"
        if self.hint is not None:
            text += f"; {self.hint}"
        return of_file(self.file, text)


class UnknownKeyError(ConfigError):
    """A key that is not read (misspelled, or without its unit)."""


class UnknownKindError(ConfigError):
    """A component kind that does not exist."""


class UnknownNameError(ConfigError):
    """A component, flange, table, signal or element that does not exist."""


class MissingValueError(ConfigError):
    """A value without a default was not given."""


class RangeError(ConfigError):
    """A value outside its allowed range."""


class DuplicateError(ConfigError):
    """The same name given twice."""


class CompileError(TorqueloopError):
    """The driveline as a whole cannot be compiled; `components` names the parts involved."""

    def __init__(self, message: str, components: Iterable[str] = ()) -> None:
        super().__init__(message)
        #: names of the components involved, sorted
        self.components: tuple[str, ...] = tuple(components)
        #: file the driveline (or the first component involved) was read from
        self.file: str | None = None

    def __str__(self) -> str:
        return of_file(self.file, super().__str__())


class OverconstrainedError(CompileError):
    """A loop of rigid joints and gears that blocks shafts or leaves the torques in the loop undetermined."""


class FloatingFlangeError(CompileError):
    """A flange that must be joined to something is joined to nothing."""


class NoInertiaError(CompileError):
    """A shaft can turn freely, but nothing that turns with it has inertia."""


class NoCapacityError(CompileError):
    """Joined heat ports of which none has a heat capacity or a given temperature."""


class NoReferenceError(CompileError):
    """Joined frames of which none says how their carrier moves."""


class InitialValueError(CompileError):
    """Two initial values contradict each other."""


class DomainError(CompileError):
    """Flanges of different domains (rotational, translational, thermal, frames) are joined."""


class SimulationError(TorqueloopError):
    """The state stopped being finite or left its limits; `time_s` and `step` say where."""

    def __init__(self, message: str, time_s: float, step: int) -> None:
        super().__init__(message)
        #: simulated time of the last good state [s]
        self.time_s = time_s
        #: number of the last good step
        self.step = step


class TableError(ConfigError, CompileError):
    """A table (curve or map) is not usable: not monotone, wrong columns, not finite. Names table and row."""

    def __init__(self, problem: str, **place: Any) -> None:
        ConfigError.__init__(self, problem, **place)
        self.components: tuple[str, ...] = ()


def closest(word: str, words: Iterable[str]) -> str | None:
    """The known word nearest to `word`, or None when nothing is near."""
    known = sorted(words)
    for candidate in known:
        if candidate.lower() == word.lower():
            return candidate
    found = difflib.get_close_matches(word, known, n=1, cutoff=0.55)
    return found[0] if found else None


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """Hint for an unknown word: the closest one, or all of them. Of many: those that contain the word or begin with the
    same name, otherwise the names before the first dot."""
    known = sorted(words)
    near = closest(word, known)
    if near is not None:
        return f"did you mean {near!r}?"
    if len(known) <= MANY:
        return "known: " + (", ".join(known) if known else "none")
    for similar in (
        [name for name in known if word.lower() in name.lower()],
        [name for name in known if name.startswith(word.partition(".")[0] + ".")],
    ):
        if 0 < len(similar) <= MANY:
            return "similar: " + ", ".join(similar)
    first = dict.fromkeys(name.partition(".")[0] + "." * ("." in name) for name in known)
    return f"{len(known)} are known: " + ", ".join(name + "*" * name.endswith(".") for name in first)


def repr_short(value: Any, limit: int = 60) -> str:
    """repr of a value as a user would write it, cut to a readable length; a path is never cut."""
    if isinstance(value, PurePath):
        return repr(str(value))
    text = repr(value) if isinstance(value, (str, list, tuple, dict)) else str(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."
