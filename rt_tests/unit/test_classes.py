"""A class that is completed when it is first used is then the dataclass of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from test_structure import ROOT, relative

from torqueloop.core.describe.classes import dataclass


@dataclass(frozen=True)
class Kept:
    """Pickled in one process, and read in another that has not used it yet."""

    name: str
    held: list[int] = dataclasses.field(default_factory=list)
    share: float = dataclasses.field(default=0.5, compare=False)


def twin(decorated: Callable[..., Any]) -> type:
    @decorated(frozen=True)
    class Part:
        """A part."""

        a: int
        b: float = dataclasses.field(default=2.0, repr=False)

        def doubled(self) -> float:
            return 2.0 * self.b

    @decorated(frozen=True, kw_only=True)
    class Whole(Part):
        """More."""

        c: tuple[int, ...] = ()

    return Whole


def test_it_is_the_dataclass_of_the_standard_library() -> None:
    ours, theirs = twin(dataclass), twin(dataclasses.dataclass)
    assert ours.b == theirs.b == 2.0, "a default is an attribute of the class, before anything is completed"
    assert inspect.signature(ours) == inspect.signature(theirs)
    assert [f.name for f in dataclasses.fields(ours)] == [f.name for f in dataclasses.fields(theirs)]
    one, other = ours(1, c=(2,)), theirs(1, c=(2,))
    assert repr(one) == repr(other) and hash(one) == hash(other)
    assert one == ours(1, c=(2,)) != ours(1) and one != other
    assert dataclasses.replace(one, a=3) == copy.replace(one, a=3) if hasattr(copy, "replace") else True
    assert ours.__match_args__ == theirs.__match_args__
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.a = 2
    with pytest.raises(TypeError, match="missing 1 required"):
        ours()


def test_nothing_is_made_before_it_is_used() -> None:
    ours = twin(dataclass)
    assert not inspect.isfunction(vars(ours)["__init__"])
    assert dataclasses.is_dataclass(ours) and inspect.isfunction(vars(ours)["__init__"])
    assert inspect.isfunction(vars(ours.__mro__[1])["__init__"]), "its base as well"


def test_a_class_of_the_standard_library_may_be_based_on_one() -> None:
    @dataclasses.dataclass(frozen=True)
    class Own(twin(dataclass)):  # type: ignore[misc]
        """As components of other packages are."""

        d: int = 4

    assert Own(1, 3.0) == Own(1, 3.0, 4) and Own(1).doubled() == 4.0


def test_an_object_from_another_process_is_frozen_and_compares() -> None:
    """No `__init__` is called when it is read."""
    code = ("import pickle, sys\n"
            "kept = pickle.load(sys.stdin.buffer)\n"
            "try:\n    kept.name = 'b'\n"
            "except AttributeError as error:\n    assert type(error).__name__ == 'FrozenInstanceError'\n"
            "else:\n    raise SystemExit('not frozen')\n"
            "assert kept == type(kept)('a', [1], 0.25) and 'share=0.75' in repr(kept)\n")  # fmt: skip
    data = pickle.dumps(Kept("a", [1], 0.75))
    subprocess.run([sys.executable, "-c", code], input=data, env={"PYTHONPATH": ":".join(sys.path)}, check=True)


def test_threads_use_a_class_for_the_first_time_at_once() -> None:
    made: list[Any] = []
    for _ in range(20):
        ours, barrier = twin(dataclass), threading.Barrier(4)
        threads = [threading.Thread(target=lambda b=barrier, k=ours: (b.wait(), made.append(k(1)))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(made) == 80


def test_core_and_hil_take_their_classes_from_here() -> None:
    files = [path for room in ("core", "hil") for path in (ROOT / room).rglob("*.py")]
    eager = re.compile(r"^from dataclasses import .*\bdataclass\b|^@dataclasses\.dataclass\b", re.MULTILINE)
    assert [relative(path) for path in files if eager.search(path.read_text())] == []
