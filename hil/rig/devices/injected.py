"""The faults of a running rig: switch those that are switched by hand, see what acted and when."""

from __future__ import annotations

from collections.abc import Sequence

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import UnknownNameError, did_you_mean
from torqueloop.cython_kernels.tick.fault_rows import FaultRow
from torqueloop.cython_kernels.tick.faults import FaultTable
from torqueloop.hil.results.run import FaultStats, FaultWindow
from torqueloop.hil.rig.schema.fault_tables import Fault


@dataclass(frozen=True)
class PlannedFault:
    """One entry of [[faults]] and the rows it became: one for each model input that takes the signal, each message of a
    node."""

    spec: Fault
    name: str
    rows: tuple[FaultRow, ...]

    @property
    def target(self) -> str:
        """What it acts on."""
        return self.spec.target


class Faults:
    """The faults with the tick's table of them."""

    def __init__(self, n_sig: int, faults: Sequence[PlannedFault]) -> None:
        self.faults: list[PlannedFault] = list(faults)
        rows = [row for f in faults for row in f.rows]
        #: None: there are no faults
        self.table: FaultTable | None = FaultTable(n_sig, rows) if rows else None

    @property
    def switches(self) -> list[str]:
        """Names of the faults switched by hand, in the order of their bits."""
        return list(dict.fromkeys(f.spec.switch for f in self.faults if f.spec.switch is not None))

    def switched(self) -> dict[str, bool]:
        """Names of the switches, and whether they are on."""
        bits = self.table.switches if self.table is not None else 0
        return {name: bool(bits >> k & 1) for k, name in enumerate(self.switches)}

    def switch(self, name: str, on: bool) -> None:
        """Switch all faults of this name, from the next tick on; any thread. UnknownNameError with the closest."""
        if self.table is None or name not in self.switches:
            hint = did_you_mean(name, self.switches)
            raise UnknownNameError("no fault is switched by {value}", value=name, hint=hint)
        self.table.switch(self.switches.index(name), on)

    def stats(self, tick_s: float) -> list[FaultStats]:
        """Every fault: what, when, how often it acted (ticks; frames for those on frames), its windows."""
        if self.table is None:
            return []
        counts, active = iter(self.table.counts()), iter(self.table.active())
        windows = self._windows()
        found = []
        for number, f in enumerate(self.faults):
            acted = [(next(counts), next(active)) for _ in f.rows]
            spec, on_frames = f.spec, f.rows[0].stage in ("frame", "bus")
            times = sum(n for n, _ in acted) if on_frames else max(n for n, _ in acted)
            ticks, frames = (None, times) if on_frames else (times, None)
            found.append(
                FaultStats(f.target, spec.kind, _when(spec), spec.value, ticks, frames, any(a for _, a in acted),
                           f.name, windows[number])
            )  # fmt: skip
        return found

    def _windows(self) -> list[list[FaultWindow]]:
        """By fault; the first of several rows counts."""
        assert self.table is not None
        first: dict[int, int] = {}
        at = 0
        for number, f in enumerate(self.faults):
            first[at] = number
            at += len(f.rows)
        found: list[list[FaultWindow]] = [[] for _ in self.faults]
        for tick, row, opened, acts in self.table.log():
            if row not in first:
                continue
            of = found[first[row]]
            if opened:
                of.append(FaultWindow(tick))
            elif of:
                of[-1] = FaultWindow(of[-1].step, tick, acts)
        return found


def _when(spec: Fault) -> str:
    if spec.switch is not None:
        text = f"switched by {spec.switch}"
    elif spec.when is not None:
        text = f"when {spec.when}"
    else:
        text = f"from {spec.from_s:g} s" + (f" to {spec.until_s:g} s" if spec.until_s is not None else "")
    if spec.lasts_s is not None:
        text += f", for {spec.lasts_s:g} s"
    if spec.until is not None:
        text += f", until {spec.until}"
    return text + (f", {spec.count} times" if spec.count is not None else "")
