"""How long the machine did not run a rig that was ready: a desktop, a container or a virtual machine has other work.

python -m torqueloop.hil.realtime.withheld      one second of looking; status 1: not a machine for the real clock now
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import field
from pathlib import Path

from torqueloop.core.describe.classes import dataclass
from torqueloop.hil.results.run import WITHHELD_S

#: A thread that only sleeps comes back so much later than it asked: the whole process was not run. Far above what load
#: alone does. [s]
AWAY_S = 0.5
#: name of the process of the rig
RIG = "rig"


@dataclass
class Withheld:
    """The longest time between two looks that a thread was ready and waited for a processor (schedstat of Linux, where
    the kernel counts it), or that the looking process itself was not run."""

    longest_s: float = 0.0
    #: whom it concerns
    who: str = ""
    #: total wait of each thread at the look before [ns]
    _waited: dict[str, int] = field(default_factory=dict)
    #: where the kernel shows its processes
    proc: Path = Path("/proc")

    def look(self, processes: Iterable[tuple[str, int]], away_s: float = 0.0) -> None:
        """processes: name and identifier of each. away_s: how much later than it asked the caller came back."""
        if away_s > AWAY_S:
            self._longest(away_s, RIG)
        for name, pid in processes:
            # a thread or process that ends between two looks is not looked at any more
            with suppress(OSError, ValueError, IndexError):
                for task in (self.proc / str(pid) / "task").iterdir():
                    waited = int((task / "schedstat").read_text().split()[1])
                    before = self._waited.get(str(task), waited)
                    self._waited[str(task)] = waited
                    self._longest(1e-9 * (waited - before), name)

    def _longest(self, seconds: float, who: str) -> None:
        if seconds > self.longest_s:
            self.longest_s, self.who = seconds, who


def longest_wait(seconds: float, period_s: float = 1e-3) -> float:
    """How much too late a thread wakes that sleeps for a period at a time [s], at worst."""
    worst, end = 0.0, time.monotonic() + seconds
    while (asked := time.monotonic() + period_s) < end:
        time.sleep(period_s)
        worst = max(worst, time.monotonic() - asked)
    return worst


if __name__ == "__main__":
    sys.exit(longest_wait(1.0) > 0.2 * WITHHELD_S)
