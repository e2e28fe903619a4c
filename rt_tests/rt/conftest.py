"""The rig tests' helpers and fixtures serve here too."""

import sys
from pathlib import Path

import pytest

from torqueloop.hil.can.multicast import multicast_works

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "hil"))


@pytest.fixture
def multicast() -> None:
    """The software bus between processes works here."""
    works, reason = multicast_works()
    if not works:
        pytest.skip(f"no UDP multicast here: {reason}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What the virtual machine found is judged behind the other tests. The latency report is made last: it takes what
    others have left."""
    items.sort(key=lambda item: ("test_latency_report" in item.nodeid, "rt/test_vm.py" in item.nodeid))
