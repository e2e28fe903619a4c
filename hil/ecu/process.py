"""A control unit as a process on real buses: a control step per period on an absolute grid."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

from torqueloop.core.describe.errors import ConfigError, TorqueloopError
from torqueloop.cython_kernels.rings.ring import LatestSlot
from torqueloop.hil.can.bus import CanPort, open_bus
from torqueloop.hil.can.frame import ERROR_FLAG, REMOTE_FLAG, Frame
from torqueloop.hil.common.say import say
from torqueloop.hil.common.stop_flag import Stop, StopFlag
from torqueloop.hil.ecu.control_unit import ControlUnit, EcuInputs, EcuSetup, make_unit
from torqueloop.hil.ecu.pins import Pins
from torqueloop.hil.link.stats import AgeStatistics

#: frames in a row that a bus refuses before the process gives up
SEND_FAILURES_MAX = 200


def serve(
    unit: ControlUnit,
    ports: Sequence[CanPort],
    name: str,
    duration_s: float | None = None,
    stop: Stop | None = None,
    pins: Pins | None = None,
) -> dict[str, Any]:
    """Step the unit on the real clock until SIGTERM, SIGINT, `stop` or duration_s; its counts and those of the loop.

    A step that comes too late is done once; the grid points passed meanwhile are skipped and counted, never caught up
    in a burst.
    """
    stop = StopFlag(stop)
    period_ns = round(unit.period_s * 1e9)
    lateness, skipped, send_errors, failures = AgeStatistics(), 0, 0, 0
    unit.start()
    try:
        # a full collection in mid-loop costs milliseconds; the loop makes no cycles
        gc.collect()
        gc.freeze()
        start, index = time.monotonic_ns(), 0
        while not stop.is_set() and (duration_s is None or index * unit.period_s < duration_s):
            due = start + index * period_ns
            ahead = due - time.monotonic_ns()
            if ahead > 0:
                time.sleep(1e-9 * ahead)
            lateness.add(1e-9 * (time.monotonic_ns() - due))
            frames = tuple(frame for k, port in enumerate(ports) for frame in _received(port, k))
            sensors = pins.sensors.read()[2] if pins is not None and pins.sensors is not None else ()
            answer = unit.step(EcuInputs(1e-9 * index * period_ns, frames, sensors))
            if pins is not None and pins.actuators is not None:
                _give(pins.actuators, answer.actuators, name)
            for frame in answer.frames:
                port = ports[frame.bus]
                try:
                    port.send(frame.can_id, frame.data, frame.flags)
                    failures = 0
                except (OSError, TorqueloopError) as error:
                    send_errors += 1
                    failures += 1
                    if failures == SEND_FAILURES_MAX:
                        raise TorqueloopError(f"{name}: bus {port.name} takes no frames: {error}") from None
            behind = max(0, time.monotonic_ns() - start) // period_ns - index
            skipped += max(0, behind - 1) if behind > 1 else 0
            index += max(1, behind)
    finally:
        reported = unit.stop()
    return {**reported.counts(), "lateness": asdict(lateness.report()), "skipped": skipped, "send_errors": send_errors}


def _give(slot: LatestSlot, actuators: Sequence[float], name: str) -> None:
    if len(actuators) != slot.n or not all(map(math.isfinite, actuators)):
        raise TorqueloopError(f"{name}: actuators {actuators}; allowed: {slot.n} finite numbers")
    slot.write(actuators, time.monotonic_ns())


def _received(port: CanPort, bus: int) -> list[Frame]:
    frames = []
    while (frame := port.recv(0.0)) is not None:
        can_id, data, flags = frame
        if not flags & (ERROR_FLAG | REMOTE_FLAG):
            frames.append(Frame(can_id, data, flags, bus))
    return frames


def unit_loop(
    kind: str,
    setup: EcuSetup,
    duration_s: float | None = None,
    stop: Stop | None = None,
    log: Callable[[str], None] = say,
) -> dict[str, Any]:
    """The process of a control unit of any kind, on the given buses."""
    setup = replace(setup, own_clock=True)
    pins = None
    if setup.sensors or setup.actuators:
        if setup.pins is None:
            key = "sensors" if setup.sensors else "actuators"
            problem = f"control unit {setup.name!r} has pins, and only a rig that starts its process reaches them"
            where: dict[str, Any] = {"file": setup.rig_file or None, "table": setup.table or None}
            raise ConfigError(problem, **where, key=key, allowed="signals on a bus; or a rig that starts the unit")
        pins = Pins(len(setup.sensors), len(setup.actuators), setup.pins)
    if kind == "library":
        # this process is the one that may crash: no second one inside
        setup = replace(setup, options={**setup.options, "host": "rig"})
    unit = make_unit(kind, setup)
    ports: list[CanPort] = []
    try:
        ports += [open_bus(bus.place) for bus in setup.buses]
        on = zip(setup.buses, ports, strict=True)
        text = ", ".join(f"{bus.name} ({port.name}, node {bus.node})" for bus, port in on)
        log(f"control unit {setup.name} ({kind}): {text}, every {1e3 * unit.period_s:g} ms")
        return serve(unit, ports, f"control unit {setup.name}", duration_s, stop, pins)
    finally:
        for port in ports:
            port.close()
