"""A vehicle model as a process beside the rig, coupled over the vehicle link (ZeroMQ)."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import Any

from torqueloop.cython_kernels.link.lockstep import StepPeer
from torqueloop.hil.common.say import say
from torqueloop.hil.common.stop_flag import Stop, StopFlag
from torqueloop.hil.link.endpoints import CurveKeys
from torqueloop.hil.link.latest_value import VehicleEnd
from torqueloop.hil.link.lockstep import LockstepServer, PairServer
from torqueloop.hil.link.messages import ByeMessage
from torqueloop.hil.link.pair import Gone, Pair
from torqueloop.hil.results.links import ParticipantStats
from torqueloop.hil.vehicle.model import VehicleModel
from torqueloop.hil.vehicle.vehicle import Vehicle, VehicleSetup, make_vehicle
from torqueloop.hil.vehicle.vehicle_tables import VehicleConfig

#: the process of a rig ends when the rig has been silent for this long [s]
GIVE_UP_S = 30.0


def main_loop(
    config: VehicleConfig,
    endpoint: str | None = None,
    lockstep: bool = False,
    stop: Stop | None = None,
    log: Callable[[str], None] = say,
    curve: CurveKeys | None = None,
) -> dict[str, Any]:
    """The process of the road model by its own file."""
    address, name = endpoint or config.link.endpoint, f"vehicle {config.name}"
    return serve(VehicleModel(config), name, address, lockstep, stop, log, curve, config.link.give_up_s)


def vehicle_loop(
    kind: str,
    setup: VehicleSetup,
    endpoint: str,
    stop: Stop | None = None,
    log: Callable[[str], None] = say,
    pair: int | None = None,
) -> dict[str, Any]:
    """The process of a vehicle model of any kind, beside a rig. `pair`: number of a socket of the pair that the rig has
    made for this process; lockstep over it.

    A rig may be silent for long while it waits for another participant, is disarmed or held by a test: on Linux this
    process ends with the rig that has started it (hil/link/child.py), and leaves it for no other reason."""
    give_up_s = math.inf if sys.platform.startswith("linux") else GIVE_UP_S
    return serve(make_vehicle(kind, setup), f"vehicle ({kind})", endpoint, False, stop, log, None, give_up_s, pair)


def serve(
    model: Vehicle,
    name: str,
    endpoint: str,
    lockstep: bool = False,
    stop: Stop | None = None,
    log: Callable[[str], None] = say,
    curve: CurveKeys | None = None,
    give_up_s: float = GIVE_UP_S,
    pair: int | None = None,
) -> dict[str, Any]:
    """Serve the rig until it sends bye, is silent for give_up_s, or stop is set; counts of model and link."""
    stop = StopFlag(stop)
    model.start()
    try:
        if pair is not None:
            peer = model if isinstance(model, StepPeer) and model.asked_by_numbers() else None
            counts = _serve_lockstep(model, name, PairServer(Pair.inherited(pair), peer), stop, log, give_up_s)
        elif lockstep:
            counts = _serve_lockstep(model, name, LockstepServer(endpoint, curve), stop, log, give_up_s)
        else:
            counts = _serve_latest(model, name, VehicleEnd(endpoint, curve), stop, log, give_up_s)
    finally:
        own: object = model.stop()
    if not isinstance(own, ParticipantStats):  # of a package that no type checker has seen
        log(f"{name} left a {type(own).__name__} at its end; allowed: ParticipantStats")
        own = ParticipantStats()
    return {**own.counts(), **counts}


def _serve_lockstep(
    model: Vehicle,
    name: str,
    server: LockstepServer | PairServer,
    stop: Stop,
    log: Callable[[str], None],
    give_up_s: float,
) -> dict[str, Any]:
    log(f"{name}: lockstep with the rig at {server.endpoint}")
    last_contact = time.monotonic()
    try:
        while not stop.is_set() and server.bye is None:
            if server.serve_one(model.step):
                last_contact = time.monotonic()
            elif time.monotonic() - last_contact > give_up_s:
                log(f"{name}: the rig has been silent for {give_up_s:g} s, leaving")
                break
    except Gone:
        pass  # the rig has closed its end: the run is over
    finally:
        server.close()
    return {"exchanges": server.exchanges, "rejected": server.rejected}


def _serve_latest(
    model: Vehicle, name: str, end: VehicleEnd, stop: Stop, log: Callable[[str], None], give_up_s: float
) -> dict[str, Any]:
    log(f"{name}: latest value with the rig at {end.endpoint}")
    last_contact, answered = time.monotonic(), 0
    try:
        while not stop.is_set() and end.bye is None:
            message = end.receive(20)
            if message is not None:
                last_contact = time.monotonic()
                answered += end.send(model.step(message))
            elif time.monotonic() - last_contact > give_up_s:
                log(f"{name}: the rig has been silent for {give_up_s:g} s, leaving")
                break
        if stop.is_set():
            end.send(ByeMessage("the vehicle process was stopped"))
    finally:
        end.close()
    return {"answered": answered, "rejected": end.rejected, **end.stamps.counters()}
