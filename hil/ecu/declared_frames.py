"""Are the frames of an external control unit those of its node?

A frame of the node with the wrong length or format is an error with a name. A frame that the node does not declare is
sent and counted: real units answer diagnostics, and send more than their database says.
"""

from __future__ import annotations

from torqueloop.hil.can.database import CanDatabase, bus_id
from torqueloop.hil.can.frame import FD_FLAG, Frame
from torqueloop.hil.ecu.control_unit import Bus, EcuOutputs, EcuSetup
from torqueloop.hil.link.endpoints import PeerError


class FrameCheck:
    """Frames and actuators of one unit against its set-up and the CAN databases."""

    def __init__(self, setup: EcuSetup) -> None:
        self._n_actuators = len(setup.actuators)
        self._buses = setup.buses
        #: of each bus: (identifier, flag of CAN FD) -> name and length
        self._known = [_messages(bus) for bus in setup.buses]
        #: frames that the database does not have for the node: "0x7E8 on BUS" -> how many
        self.undeclared: dict[str, int] = {}

    def check(self, outputs: EcuOutputs) -> EcuOutputs:
        """The same outputs; PeerError with what is wrong."""
        for frame in outputs.frames:
            if not 0 <= frame.bus < len(self._known):
                names = ", ".join(bus.name for bus in self._buses)
                raise PeerError(f"sent a frame on bus {frame.bus}; allowed: 0 .. {len(self._known) - 1} ({names})")
            known = self._known[frame.bus].get(frame.can_id)
            if known is None:
                what = f"0x{frame.can_id & 0x1FFFFFFF:X} on {self._buses[frame.bus].name}"
                self.undeclared[what] = self.undeclared.get(what, 0) + 1
            elif known[1:] != (len(frame.data), frame.flags & FD_FLAG):
                raise PeerError(self._problem(frame, *known))
        if len(outputs.actuators) != self._n_actuators:
            raise PeerError(f"gave {len(outputs.actuators)} actuator values; needed: {self._n_actuators}")
        return outputs

    def _problem(self, frame: Frame, name: str, length: int, fd: int) -> str:
        bus = self._buses[frame.bus]
        where = f"node {bus.node} of {bus.database.name}"
        if len(frame.data) != length:
            return f"sent {name} (0x{frame.can_id & 0x1FFFFFFF:X}) with {len(frame.data)} bytes; {where} says {length}"
        kind = "a CAN FD" if frame.flags & FD_FLAG else "a classic"
        return f"sent {name} (0x{frame.can_id & 0x1FFFFFFF:X}) as {kind} frame; {where} has it as " + (
            "CAN FD" if fd else "classic"
        )


def _messages(bus: Bus) -> dict[int, tuple[str, int, int]]:
    sent = CanDatabase.load(bus.database, bus.node, timeouts_s={"*": 0.0}).tx_messages
    return {bus_id(m): (m.name, m.length, FD_FLAG if m.fd else 0) for m in sent}
