"""Fixtures of the rig tests."""

import pytest

from torqueloop.hil.can.multicast import multicast_works


@pytest.fixture
def multicast() -> None:
    """The software bus between processes works here."""
    works = multicast_works()
    if not (works[0] if isinstance(works, tuple) else works):
        pytest.skip(f"no UDP multicast here: {works}")
