"""Gets the ticks around the first fault to disk while the run goes on: a thread that is neither loop nor recorder."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from torqueloop.cython_kernels.tick.first_fault import FirstFault
from torqueloop.hil.record.first_fault import FOLDER, write_first_fault
from torqueloop.hil.record.run_data import signal_header
from torqueloop.hil.record.signals import signal_dtype
from torqueloop.hil.results.run import FirstFaultStats
from torqueloop.hil.rig.assemble.parts import RigParts
from torqueloop.hil.rig.assemble.safe_state import describe
from torqueloop.hil.rig.resolve.plan import RigPlan

#: at the end of a run the disk gets so long; one that hangs does not keep the run from ending [s]
WRITE_S = 10.0


class FirstFaultWriter:
    """Writes once: when the ring is frozen, or what it holds when the run ends with the safe state latched."""

    def __init__(self, plan: RigPlan, parts: RigParts, folder: Path) -> None:
        self._plan, self._parts, self._folder = plan, parts, folder
        self._thread: threading.Thread | None = None
        #: what became of it, for run.json; None: no fault
        self.result: FirstFaultStats | None = None

    @property
    def ring(self) -> FirstFault:
        """The ring of the run."""
        return self._parts.first_fault

    def look(self) -> None:
        """Start writing once the ring is complete. Called now and then; takes no time."""
        if self._thread is None and self.ring.frozen:
            self._start()

    def finish(self) -> None:
        """The loop has ended or is given up: write what there is."""
        if self._thread is None and self._parts.rig.cause()["latched"]:
            self.ring.hold()
            self._start()
        if self._thread is not None:
            self._thread.join(WRITE_S)
            if self._thread.is_alive():
                self.result = FirstFaultStats(error=f"the disk has not taken it within {WRITE_S:g} s")

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._write, name="torqueloop-first-fault", daemon=True)
        self._thread.start()

    def _write(self) -> None:
        plan, cause = self._plan, self._parts.rig.cause()
        tick_s = plan.config.clock.tick_s
        names, slots = [n for n, _ in plan.recorded], [s for _, s in plan.recorded]
        sentence = describe(cause, plan.cause_name(cause))
        more = {
            "cause": cause["cause"],
            "sentence": sentence,
            "signal": plan.cause_name(cause),
            "latched": cause["tick"],
        }
        header = signal_header(names, [plan.table.units[s] for s in slots], tick_s, **more)
        records = self.ring.records()
        ticks = len(records) // signal_dtype(len(names)).itemsize
        where: str | None = None
        problem: str | None = None
        try:
            path, reason = write_first_fault(self._folder, header, records)
            where = FOLDER if path.parent == self._folder else str(path)
            if reason:
                problem = f"not in the run directory: {reason}"
                print(f"first fault: in {path}; {problem}", file=sys.stderr)
        except Exception as error:
            problem = f"nowhere: {type(error).__name__}: {error}"
            print(f"first fault: written {problem}", file=sys.stderr)
        self.result = FirstFaultStats(ticks, cause["tick"], where, problem)
