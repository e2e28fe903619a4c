"""Are the frames of an external control unit those of its node? A mistake is an error with a name, not a count."""

from __future__ import annotations

from torqueloop.hil.can.database import CanDatabase, bus_id
from torqueloop.hil.can.frame import FD_FLAG, Frame
from torqueloop.hil.ecu.kinds import Bus, EcuOutputs, EcuSetup
from torqueloop.hil.link.sockets import PeerError


class FrameCheck:
    """Frames and actuators of one unit against its set-up and the CAN databases."""

    def __init__(self, setup: EcuSetup) -> None:
        self._n_actuators = len(setup.actuators)
        self._buses = setup.buses
        #: of each bus: (identifier, flag of CAN FD) -> name and length
        self._known = [_messages(bus) for bus in setup.buses]

    def check(self, outputs: EcuOutputs) -> EcuOutputs:
        """The same outputs; PeerError with what is wrong."""
        for frame in outputs.frames:
            if not 0 <= frame.bus < len(self._known):
                names = ", ".join(bus.name for bus in self._buses)
                raise PeerError(f"sent a frame on bus {frame.bus}; allowed: 0 .. {len(self._known) - 1} ({names})")
            known = self._known[frame.bus].get(frame.can_id)
            if known is None or known[1:] != (len(frame.data), frame.flags & FD_FLAG):
                raise PeerError(self._problem(frame))
        if len(outputs.actuators) != self._n_actuators:
            raise PeerError(f"gave {len(outputs.actuators)} actuator values; needed: {self._n_actuators}")
        return outputs

    def _problem(self, frame: Frame) -> str:
        bus, known = self._buses[frame.bus], self._known[frame.bus]
        found = known.get(frame.can_id)
        where = f"node {bus.node} of {bus.database.name}"
        if found is None:
            allowed = ", ".join(f"0x{i & 0x1FFFFFFF:X} {name}" for i, (name, _, _) in known.items())
            return f"sent frame 0x{frame.can_id & 0x1FFFFFFF:X} on bus {bus.name}, which {where} does not send; " + (
                f"allowed: {allowed or 'none'}"
            )
        name, length, fd = found
        if len(frame.data) != length:
            return f"sent {name} (0x{frame.can_id & 0x1FFFFFFF:X}) with {len(frame.data)} bytes; {where} says {length}"
        kind = "a CAN FD" if frame.flags & FD_FLAG else "a classic"
        return f"sent {name} (0x{frame.can_id & 0x1FFFFFFF:X}) as {kind} frame; {where} has it as " + (
            "CAN FD" if fd else "classic"
        )


def _messages(bus: Bus) -> dict[int, tuple[str, int, int]]:
    sent = CanDatabase.load(bus.database, bus.node, timeouts_s={"*": 0.0}).tx_messages
    return {bus_id(m): (m.name, m.length, FD_FLAG if m.fd else 0) for m in sent}
