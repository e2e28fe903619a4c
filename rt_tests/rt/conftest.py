"""The rig tests' helpers and fixtures serve here too."""

import os
import sys
from pathlib import Path

import pytest
import vm_process

from torqueloop.hil.can.multicast import multicast_works

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "hil"))


@pytest.fixture
def multicast() -> None:
    """The software bus between processes works here."""
    works, reason = multicast_works()
    if not works:
        pytest.skip(f"no UDP multicast here: {reason}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The virtual machine measures beside the other tests, which have the machine's other CPU; what it found is judged
    behind them. The latency report is made last: it takes what others have left."""
    items.sort(key=lambda item: ("test_latency_report" in item.nodeid, "rt/test_vm.py" in item.nodeid))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Only now is it known which tests are wanted."""
    if os.environ.get("TORQUELOOP_VM") != "1" or session.config.option.collectonly:
        return
    if any("rt/test_vm.py" in item.nodeid for item in session.items):
        vm_process.start()
