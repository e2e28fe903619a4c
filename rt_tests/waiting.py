"""The one place where a test waits for another thread or process, and for how long."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

#: Whatever has not come by then hangs [s]. Nothing is judged by it, so it costs time only where a test fails: a machine
#: that others share may withhold its processors for seconds, and a test must not mistake that for a hang.
PATIENCE_S = 300.0
#: the same for ZeroMQ [ms]
PATIENCE_MS = round(1e3 * PATIENCE_S)

Found = TypeVar("Found")


def wait_for(
    condition: Callable[[], Found], alive: Callable[[], object] = lambda: True, *, pause_s: float = 0.005
) -> Found:
    """Wait until the condition gives something true, and return it.

    alive: false once what is waited for cannot come any more, so that a test fails at once and not after PATIENCE_S.
    """
    end = time.monotonic() + PATIENCE_S
    while True:
        # looked at first: what has come before the other side ended counts
        still = alive() and time.monotonic() < end
        if found := condition():
            return found
        assert still, "it does not come"
        time.sleep(pause_s)
