"""Fixtures of the rig tests."""

import pytest

from torqueloop.hil.can.multicast import multicast_works
from torqueloop.hil.report import report


@pytest.fixture(autouse=True)
def no_excuse(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that fails here has failed, also where the machine withholds its processors (unit/test_withheld.py)."""
    monkeypatch.setattr(report, "WITHHELD_S", float("inf"))


@pytest.fixture
def multicast() -> None:
    """The software bus between processes works here."""
    works = multicast_works()
    if not (works[0] if isinstance(works, tuple) else works):
        pytest.skip(f"no UDP multicast here: {works}")
