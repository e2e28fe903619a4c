"""A process that holds a control unit of any kind, in lockstep with the rig over shared memory.

    python -m torqueloop.hil.ecu.host --fd N --kind KIND --setup JSON --parent PID

The messages are those of hil/ecu/messages.py; what goes wrong is answered, not only written to the log.
"""

from __future__ import annotations

import argparse
import signal
import sys
from typing import Any

from torqueloop.hil.common.lean_imports import put_off_asammdf

if __name__ == "__main__":
    # before anything that imports python-can
    put_off_asammdf()

from torqueloop.core.describe.errors import TorqueloopError
from torqueloop.hil.ecu.control_unit import ControlUnit, EcuInputs, EcuSetup, make_unit, setup_from_json
from torqueloop.hil.ecu.messages import frames_of, numbers_of, pack, pack_out, unpack, usual_step
from torqueloop.hil.link.child import die_with
from torqueloop.hil.link.pair import Gone, Pair


def serve(pair: Pair, kind: str, setup: EcuSetup) -> None:
    """Answer the rig until it says stop or is gone."""
    unit: ControlUnit | None = None
    try:
        while True:
            try:
                data = pair.receive(3600.0)
            except Gone:
                return
            if data is None:
                continue
            usual = usual_step(data) if unit is not None else None
            body: dict[str, Any] = {"kind": "step"} if usual is not None else unpack(data)
            try:
                if usual is not None and unit is not None:
                    answer = pack_out(usual[0], unit.step(usual[1]))
                elif body["kind"] == "init":
                    unit = make_unit(kind, setup)
                    unit.start()
                    answer = pack("ready")
                elif unit is None:
                    answer = pack("error", text="the first message must be 'init'")
                else:
                    answer = _answer(unit, body)
            except TorqueloopError as error:
                answer = pack("error", text=str(error))
            except (KeyError, TypeError, ValueError) as error:
                answer = pack("error", text=f"{type(error).__name__}: {error}")
            pair.send(answer)
            if body["kind"] == "stop":
                unit = None
                return
    finally:
        if unit is not None:
            unit.stop()


def _answer(unit: ControlUnit, body: dict[str, Any]) -> bytes:
    kind = body["kind"]
    if kind == "step":
        inputs = EcuInputs(float(body["t"]), frames_of(body["frames"]), numbers_of(body["sensors"], "sensors"))
        return pack_out(body["step"], unit.step(inputs))
    if kind == "save":
        return pack("state", state=unit.save())
    if kind == "load":
        unit.load(body["state"])
        return pack("ready")
    return pack("bye", counts=unit.stop().counts())


def main() -> int:
    """Entry of the process."""
    parser = argparse.ArgumentParser(prog="torqueloop.hil.ecu.host")
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument("--kind", required=True)
    parser.add_argument("--setup", required=True)
    parser.add_argument("--parent", type=int, required=True)
    given = parser.parse_args()
    die_with(given.parent)
    # Ctrl-C is for the rig, which then ends this process
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(Pair.inherited(given.fd), given.kind, setup_from_json(given.setup))
    return 0


if __name__ == "__main__":
    sys.exit(main())
