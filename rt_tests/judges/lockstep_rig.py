"""A rig in lockstep with another process over its software buses: it takes a tick when that process says so.

    python rt_tests/judges/lockstep_rig.py RIG TICKS OUT

Each bus carries, besides its frames, GO from the other process (all frames of this tick are sent) and SYNC from here
(so are ours). Ticks are numbers, not times: what arrives in which one does not depend on the machine. OUT gets, as
JSON, the ticks in which a counter of a received message grew, by how much: [[tick, bus, message, reason, n], ...].

This is the rig's side of rt_tests/judges/independent_receiver.py prove, which imports nothing of torqueloop.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from torqueloop.hil.can.bus import CanPort, open_bus
from torqueloop.hil.rig.assemble.parts import BusParts, build
from torqueloop.hil.rig.resolve.plan import load_plan

#: identifiers that no database here uses
GO, SYNC = 0x7FD, 0x7FE
MS = 1_000_000
#: what may become of a frame
REASONS = ("ok", "format", "length", "crc", "repeat", "jump", "range")
#: the other process is gone [s]
PATIENCE_S = 30.0


class Side:
    """One bus, and what has been counted of it."""

    def __init__(self, bus: BusParts, port: CanPort) -> None:
        self.bus, self.port = bus, port
        self.counts = bus.rx.counters()

    def take(self, tick: int) -> None:
        """Everything that came for this tick, into the ring of the gateway."""
        while True:
            frame = self.port.recv(PATIENCE_S)
            if frame is None:
                raise SystemExit(f"{self.bus.name}: nothing heard for {PATIENCE_S:.0f} s in tick {tick}")
            can_id, data, flags = frame
            if can_id == GO:
                return
            if not self.bus.rx_ring.push(can_id, data, tick * MS, flags):
                raise SystemExit(f"{self.bus.name}: more frames than the ring holds in tick {tick}")

    def give(self, tick: int) -> None:
        """What the tick has sent."""
        for can_id, data, _, flags in self.bus.tx_ring.pop_all():
            self.port.send(can_id, data, flags)
        self.port.send(SYNC, tick.to_bytes(4, "little"))

    def grown(self, tick: int) -> list[tuple[int, str, str, str, int]]:
        """What was counted in this tick."""
        now, before = self.bus.rx.counters(), self.counts
        self.counts = now
        return [
            (tick, self.bus.name, message, reason, n - before[message][reason])
            for message, counts in now.items()
            for reason in REASONS
            if (n := counts[reason]) != before[message][reason]
        ]


def main() -> int:
    """Status 0 when all ticks ran."""
    rig, ticks, out = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    plan = load_plan(rig)
    parts = build(plan, ticks * plan.config.clock.tick_s)
    sides = []
    for bus, described in zip(parts.buses, plan.buses, strict=True):
        sides.append(Side(bus, open_bus(described.config.bus())))
    print("ready", flush=True)
    grown = []
    parts.rig.begin(0)
    for tick in range(ticks):
        for side in sides:
            side.take(tick)
        if parts.rig.ticks(1, tick * MS) != 1:
            raise SystemExit(f"the rig stopped in tick {tick}")
        for side in sides:
            side.give(tick)
            grown += side.grown(tick)
        parts.samples.drain()
        parts.inputs.drain()
        parts.bus_log.drain()
    out.write_text(json.dumps(grown))
    return 0


if __name__ == "__main__":
    sys.exit(main())
