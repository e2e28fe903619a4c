"""A run on the virtual clock: participants in lockstep, as fast as the computer can."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace

from torqueloop.cython_kernels.link.lockstep import StepPeer
from torqueloop.hil.ecu.control_unit import ControlUnit, make_unit
from torqueloop.hil.ecu.external import ExternalUnit, Options, hosted
from torqueloop.hil.link.endpoints import PeerError
from torqueloop.hil.link.lockstep import LockstepClient
from torqueloop.hil.link.pair import Pair
from torqueloop.hil.realtime import rtenv
from torqueloop.hil.results.files import VERSION, ResultError, parse, plain
from torqueloop.hil.results.links import ParticipantStats
from torqueloop.hil.rig.assemble.virtual_links import (
    VehicleStep,
    VirtualBus,
    VirtualUnit,
    VirtualUnits,
    VirtualVehicle,
    run_virtual,
)
from torqueloop.hil.rig.online.restore import Participants
from torqueloop.hil.rig.resolve.setups import ecu_setup, vehicle_setup
from torqueloop.hil.rig.run.io_devices import open_io
from torqueloop.hil.rig.run.live_run import STATS_S, LiveRun, Pilot, StartError, start_participant
from torqueloop.hil.rig.run.participants import Participant
from torqueloop.hil.rig.run.progress import Progress
from torqueloop.hil.rig.schema.participants import curve_keys
from torqueloop.hil.vehicle.vehicle import make_vehicle, setup_to_json

#: a paced run may be so far ahead of the clock on the wall [s]: a frame of a screen is 16 ms
PACED_S = 0.005


def run_virtual_clock(
    run: LiveRun,
    participants: str,
    progress: bool,
    vehicle: VehicleStep | None,
    units_given: Mapping[str, ControlUnit],
    pilot: Pilot | None = None,
    paced: bool = False,
) -> str:
    """Run on the virtual clock; how it ended. paced: no faster than real time, for a driver at the page."""
    c, plan = run.plan.config, run.plan
    with ExitStack() as stack:
        virtual_vehicle = _vehicle(stack, run, participants, vehicle)
        units = _units(stack, run, participants, units_given)
        open_io(stack, run)
        n_ticks = round(run.folder.duration_s / c.clock.tick_s)
        shown = stack.enter_context(Progress(progress, plan, run.parts, n_ticks))
        stack.enter_context(run.recorder)
        stack.enter_context(run.setup)
        run.took(rtenv.denormals(), rtenv.freeze_gc(collect=False))
        run.folder.write(state="running", realtime=run.realtime())
        next_stats = time.monotonic() + STATS_S
        rings = [run.parts.samples]
        rings += [run.parts.inputs] if c.record.inputs else []
        rings += [run.parts.bus_log] if c.record.bus and plan.buses else []

        def every() -> None:
            nonlocal next_stats
            run.modes.drain()
            shown.update()
            failure = (virtual_vehicle.failure if virtual_vehicle is not None else None) or units.failure
            if failure and not run.note:
                run.note = failure
            for remark in run.control.checkpoints.remarks:
                run.degrade(remark)
            if time.monotonic() >= next_stats:
                next_stats = time.monotonic() + STATS_S
                run.save()
                rtenv.collect_young()
            run.look_at_recorder()
            # as fast as it goes may be faster than the disk: wait for the recorder rather than lose samples
            while any(len(ring) > ring.capacity // 2 for ring in rings) and run.recorder.alive():
                time.sleep(0.002)

        state = "ended"
        run.began_s = began_s = time.monotonic()
        try:
            run.control.checkpoints.participants = Participants(virtual_vehicle, units)
            checkpoints = run.control.checkpoints.between

            def between() -> int:
                if pilot is not None:
                    pilot.between()
                if paced:
                    _wait_until(began_s + run.parts.rig.tick * c.clock.tick_s)
                return checkpoints()

            with _on_one_cpu(_processes(run, units)):
                run_virtual(run.parts, n_ticks, virtual_vehicle, units, plan.period_ns, every, between=between)
        except KeyboardInterrupt:
            state = "interrupted"
        run.over_s = time.monotonic()
        every()
    run.modes.drain()
    return state


def _wait_until(due_s: float) -> None:
    """Sleep to a time of `time.monotonic` that is ahead by more than a few milliseconds, which a sleep can keep."""
    ahead = due_s - time.monotonic()
    if ahead > PACED_S:
        time.sleep(ahead)


def _processes(run: LiveRun, units: VirtualUnits) -> list[int]:
    """Process numbers of the participants that the rig has started and waits for."""
    own = [unit.unit.process for unit in units.units if isinstance(unit.unit, ExternalUnit)]
    return [*(participant.process.pid for participant in run.participants.values()), *(pid for pid in own if pid)]


@contextmanager
def _on_one_cpu(pids: list[int]) -> Iterator[None]:
    """This thread and these processes on one CPU: one of them runs at a time, each waits for the other, and waking the
    next one on the same CPU is the shortest way (in a virtual machine by far: 10 us there and back, 50 and more where
    the other CPU has gone to sleep). Looking for the answer instead, on two CPUs, would be a fifth faster on an idle
    machine and three times slower beside others."""
    if not pids or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    cpu = ctypes.CDLL(None).sched_getcpu()
    try:
        for pid in (0, *pids):
            with suppress(OSError):  # it has ended already, which is said elsewhere
                os.sched_setaffinity(pid, {cpu})
        yield
    finally:
        os.sched_setaffinity(0, before)


def _units(stack: ExitStack, run: LiveRun, participants: str, given: Mapping[str, ControlUnit]) -> VirtualUnits:
    """The control units in this process, started; they are stopped, and their counts kept, when the stack unwinds."""
    plan, parts, tick_s = run.plan, run.parts, run.plan.config.clock.tick_s
    buses = [VirtualBus(bus.name, bus.tx_ring, bus.rx_ring) for bus in parts.buses]
    units = []
    for planned in plan.units:
        unit = given.get(planned.name)
        if unit is None:
            if not planned.config.started or participants == "none":
                raise StartError(
                    f"control unit {planned.name} is not started by the rig: it cannot run on the virtual clock, which "
                    f"waits for no process outside the rig; allowed: --clock real, or another kind in "
                    f"[ecu.{planned.name}] of {plan.path}"
                )
            setup = ecu_setup(plan, planned, run.folder.path)
            unit = make_unit(planned.config.kind, setup)
            if not planned.config.in_process and not isinstance(unit, ExternalUnit):
                options = Options(start_timeout_s=planned.config.start_timeout_s)
                unit = hosted(planned.config.kind, setup, unit.period_s, options)
        sensors = [slot for _, slot, _ in planned.sensors]
        actuators = parts.pins[planned.name].actuators if planned.name in parts.pins else None
        units.append(VirtualUnit(planned.name, unit, tick_s, planned.buses, sensors, actuators))
    for bus in plan.buses:
        if bus.required and not any(bus.name in unit.buses for unit in plan.units):
            name = bus.database.messages[bus.required[0]].name
            raise StartError(
                f"no control unit on bus {bus.name} sends {name}: one outside the rig cannot run on the virtual "
                f"clock; allowed: --clock real, or a table [ecu.NAME] in {plan.path}"
            )
    for started in units:
        stack.callback(_stop_unit, run, started)
        try:
            started.unit.start()
        except PeerError as error:
            raise StartError(f"control unit {started.name}: {error}") from None
    return VirtualUnits(parts.rig, tick_s, buses, units)


def _stop_unit(run: LiveRun, unit: VirtualUnit) -> None:
    _stop_peer(run, unit.name, f"control unit {unit.name}", unit.unit.stop)


def _stop_peer(run: LiveRun, name: str, what: str, stop: Callable[[], ParticipantStats]) -> None:
    stats: object = stop()
    if not isinstance(stats, ParticipantStats):  # of a package that no type checker has seen
        run.degrade(f"{what} left a {type(stats).__name__} at its end; allowed: ParticipantStats")
        stats = ParticipantStats()
    try:
        stats = parse(ParticipantStats, {"format": VERSION, **plain(stats)}, what)
    except ResultError as error:
        run.degrade(
            f"{what} left counts that cannot be read ({error}); its own belong into ParticipantStats(reported={{...}})"
        )
        stats = ParticipantStats()
    run.participant_stats[name] = stats if stats.place else replace(stats, place="in process")


def _vehicle(stack: ExitStack, run: LiveRun, participants: str, given: VehicleStep | None) -> VirtualVehicle | None:
    """The vehicle model: one that was given, in this process, or a process in lockstep."""
    v = run.plan.config.vehicle
    if v is None:
        return None
    assert run.plan.vehicle is not None
    every = run.plan.vehicle.every
    if given is not None:
        return VirtualVehicle(run.parts, given, every=every)
    if v.started and v.in_process and participants == "config":
        model = make_vehicle(v.kind, vehicle_setup(run.plan))
        peer = model if isinstance(model, StepPeer) and model.asked_by_numbers() else None
        virtual = VirtualVehicle(run.parts, model.step, peer=peer, every=every)
        stack.callback(_stop_peer, run, "vehicle", f"vehicle of kind {v.kind}", model.stop)
        run.lockstep = virtual
        model.start()
        return virtual
    client = _lockstep_vehicle(stack, run, participants)
    virtual = VirtualVehicle(run.parts, client.exchange, client, every=every)
    # its first answer is waited for here, before anything runs
    virtual.before_tick(0)
    if virtual.failure is not None:
        raise StartError(virtual.failure)
    return virtual


def _lockstep_vehicle(stack: ExitStack, run: LiveRun, participants: str) -> LockstepClient:
    """The vehicle in a process of its own: one the rig starts, over shared memory, or one that connects."""
    v = run.plan.config.vehicle
    assert v is not None
    participant: list[Participant] = []

    def ended() -> str | None:
        return participant[0].ended() if participant else None

    if v.started and participants == "config":
        pair, theirs = Pair.make()
        client = LockstepClient("", v.start_timeout_s, peer_dead=ended, transport=pair)
        arguments = [
            "vehicle",
            v.kind,
            "--setup",
            setup_to_json(vehicle_setup(run.plan)),
            "--pair",
            str(theirs.fileno()),
        ]
        with theirs:
            participant.append(start_participant(stack, run, "vehicle", arguments, [theirs.fileno()]))
        # closed first: the process then ends by itself
        stack.callback(client.close)
    else:
        keys = curve_keys(run.plan.path, v.server_key, v.client_keys)
        try:
            client = LockstepClient(v.endpoint, v.start_timeout_s, keys)
        except PeerError as error:
            raise StartError(f"{error}; [vehicle] endpoint of {run.plan.path}: port 0 takes any free one") from None
        stack.callback(client.close)
    run.lockstep = client
    return client
