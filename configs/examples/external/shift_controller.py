"""A small shift controller for the ZF 4HP22 in another process, over ZeroMQ. It knows nothing of torqueloop.

    python shift_controller.py tcp://127.0.0.1:43190 [tcu_4hp22.dbc]

The same as shift_controller.c beside it. Needs pyzmq, msgpack and cantools. The messages are described in
docs/external_controllers.md of torqueloop.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import cantools
import msgpack
import zmq

VERSION = 1
PERIOD_S = 5e-3
ELEMENTS = ("C4", "C5", "C6", "C7", "C8", "C11", "C12")
PRESSED = [{"C11"}, {"C4", "C11"}, {"C4", "C6", "C7", "C11"}, {"C4", "C5", "C7", "C11"}, {"C4", "C5", "C7", "C12"}]
#: output speed [rpm] of the shift up from a gear, at no and at full pedal
UP_RPM = [(0, 0), (480, 1620), (900, 2700), (1400, 3590), (0, 0)]
BACK_RPM, KISS_BAR, ON_BAR_PER_S, OFF_BAR_PER_S, MIN_GEAR_S, SILENT_S = 450.0, 0.8, 18.0, 30.0, 1.0, 0.1
FORWARD = ("D", "4", "3", "2", "1")


def checksum(can_id: int, data: bytes) -> int:
    """AUTOSAR E2E profile 1A: CRC-8 0x1D over the data id and bytes 1..7."""
    crc, data_id = 0, 0x4200 + can_id
    for byte in (data_id & 0xFF, data_id >> 8, *data[1:]):
        crc ^= byte
        for _ in range(8):
            crc = (crc << 1 ^ 0x1D if crc & 0x80 else crc << 1) & 0xFF
    return crc


class Controller:
    """Frames in, frames out, every 5 ms of simulated time."""

    def __init__(self, database: Path) -> None:
        self.database: Any = cantools.database.load_file(str(database))
        # everything that changes, as plain data: what `save` hands out
        self.s: dict[str, Any] = {
            "heard_s": -1.0, "in_gear_s": 0.0, "pedal": 0.0, "w_out_rpm": 0.0, "lever": "N", "gear": 0, "shifts": 0,
            "steps": 0, "alive": [0, 0, 0], "bar": dict.fromkeys(ELEMENTS, 0.0),
        }  # fmt: skip

    def step(self, t_s: float, frames: list[Any]) -> list[Any]:
        s = self.s
        for _, can_id, _, data in frames:
            if can_id in (0x110, 0x111) and checksum(can_id, data) == data[0]:
                signals = self.database.decode_message(can_id, data)
                if can_id == 0x110:
                    s["w_out_rpm"] = float(signals["n_output"])
                else:
                    s["pedal"], s["lever"] = 0.01 * float(signals["pedal"]), str(signals["lever"])
                s["heard_s"] = t_s
        if s["heard_s"] >= 0.0 and t_s - s["heard_s"] > SILENT_S:
            s["lever"] = "N"  # the rig is silent: open the torque path
        self.choose_gear()
        line = 5.0 + 8.0 * s["pedal"]
        for name, bar in s["bar"].items():
            wanted = line if name in PRESSED[s["gear"]] else 0.0
            if bar < wanted:
                s["bar"][name] = min(wanted, max(bar, KISS_BAR) + ON_BAR_PER_S * PERIOD_S)
            else:
                s["bar"][name] = max(wanted, bar - OFF_BAR_PER_S * PERIOD_S)
        out = [
            self.frame(0, 0x210, "1", {f"p_{n}": s["bar"][n] for n in ("C4", "C5", "C6", "C7")}),
            self.frame(1, 0x211, "2", {**{f"p_{n}": s["bar"][n] for n in ("C8", "C11", "C12")}, "p_LU": 0.0}),
        ]
        if s["steps"] % 2 == 0:
            other = {"tau_limit": 1200, "slip_lockup": 0, "lever_echo": s["lever"]}
            others = ("shift_active", "shift_phase", "lockup_state", "tau_limit_active", "fault_code")
            gears = {"gear_actual": s["gear"], "gear_target": s["gear"]}
            out.append(self.frame(2, 0x212, "3", {**gears, **other, **dict.fromkeys(others, 0)}))
        s["steps"] += 1
        return out

    def choose_gear(self) -> None:
        s = self.s
        s["in_gear_s"] += PERIOD_S
        gear = s["gear"]
        if s["lever"] not in FORWARD:
            s["gear"] = 0
            return
        if gear == 0:
            gear = 1
        elif s["in_gear_s"] >= MIN_GEAR_S:
            if gear < 4 and s["w_out_rpm"] > self.up_rpm(gear):
                gear += 1
            elif gear > 1 and s["w_out_rpm"] < self.up_rpm(gear - 1) - BACK_RPM:
                gear -= 1
        if gear != s["gear"]:
            s["gear"], s["in_gear_s"], s["shifts"] = gear, 0.0, s["shifts"] + 1

    def up_rpm(self, gear: int) -> float:
        low, high = UP_RPM[gear]
        return float(low + self.s["pedal"] * (high - low))

    def frame(self, k: int, can_id: int, suffix: str, signals: dict[str, Any]) -> list[Any]:
        alive = self.s["alive"]
        # normal; off until something was heard
        own = {f"CRC_{suffix}": 0, f"Alive_{suffix}": alive[k], f"Mode_{suffix}": int(self.s["heard_s"] >= 0.0)}
        data = bytearray(self.database.encode_message(can_id, {**own, **signals}))
        alive[k] = (alive[k] + 1) % 15
        data[0] = checksum(can_id, bytes(data))
        return [0, can_id, 0, bytes(data)]


def serve(endpoint: str, database: Path) -> None:
    """Answer the rig until it says stop."""
    controller = Controller(database)
    with zmq.Context() as context, context.socket(zmq.REP) as socket:
        socket.connect(endpoint)
        while True:
            message = msgpack.unpackb(socket.recv())
            kind = message["kind"]
            answer: dict[str, Any] = {"kind": "ready"}
            if message["v"] != VERSION:
                answer = {"kind": "error", "text": f"speaks version {VERSION}, was asked in {message['v']}"}
            elif kind == "init" and abs(message["period_s"] - PERIOD_S) > 1e-9:
                answer = {"kind": "error", "text": f"needs period_s = {PERIOD_S}, was given {message['period_s']}"}
            elif kind == "step":
                frames = controller.step(message["t"], message["frames"])
                answer = {"kind": "out", "step": message["step"], "frames": frames, "actuators": []}
            elif kind == "save":
                answer = {"kind": "state", "state": controller.s}
            elif kind == "load":
                controller.s = message["state"]
            elif kind == "stop":
                answer = {"kind": "bye", "counts": {"shifts": controller.s["shifts"]}}
            socket.send(msgpack.packb({"v": VERSION, **answer}))
            if kind == "stop":
                return


if __name__ == "__main__":
    beside: Path = Path(__file__).resolve().parents[2] / "can" / "tcu_4hp22.dbc"
    serve(sys.argv[1], Path(sys.argv[2]) if len(sys.argv) > 2 else beside)
