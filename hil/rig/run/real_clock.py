"""A run on the real clock: gateway, vehicle link and participants are started, the loop thread is awake, the
participants have sent; then the rig is armed and supervised.

Everything is entered on one ExitStack, in the order it is needed, and stopped in the reverse order, whatever happens.
"""

from __future__ import annotations

import errno
import hashlib
import socket
import sys
import threading
import time
from contextlib import ExitStack
from dataclasses import replace

from torqueloop.hil.can.bus import CanBusError, CanGateway, open_bus
from torqueloop.hil.can.database import bus_id
from torqueloop.hil.can.multicast import DEFAULT_PORT, LOOPBACK
from torqueloop.hil.ecu.control_unit import setup_to_json
from torqueloop.hil.link.endpoints import PeerError
from torqueloop.hil.link.latest_value import RigLink
from torqueloop.hil.realtime import rtenv
from torqueloop.hil.rig.assemble.safe_state import Watchdog
from torqueloop.hil.rig.devices.device import BusPlan
from torqueloop.hil.rig.resolve.setups import ecu_setup, vehicle_setup
from torqueloop.hil.rig.run.interrupts import Interrupts
from torqueloop.hil.rig.run.io_devices import open_io
from torqueloop.hil.rig.run.live_run import (
    GIVE_UP_S,
    LINKS_BELOW,
    LOOK_S,
    STATS_S,
    LiveRun,
    StartError,
    start_participant,
)
from torqueloop.hil.rig.run.native_can import heard as others
from torqueloop.hil.rig.run.native_can import open_native
from torqueloop.hil.rig.run.progress import Progress
from torqueloop.hil.rig.run.unit_pins import SilentPins, share_pins
from torqueloop.hil.rig.schema.participants import curve_keys
from torqueloop.hil.vehicle.vehicle import setup_to_json as vehicle_json

#: buses that reach no control unit of a car
SOFTWARE_BUSES = ("udp_multicast", "virtual")
#: the bus is listened to for this long before anything is sent: 25 cycles of a message of 10 ms [s]
LISTEN_S = 0.25
#: frames that wait so long while none goes out: the sending thread hangs. Far above any cycle time, below what fills
#: the ring [s]
SENDER_S = 2.0
#: rigs of one computer that start their own control units and so may take a port of their own
RIGS_AT_ONCE = 50


def run_real_clock(run: LiveRun, participants: str, progress: bool, disarmed: bool = False) -> str:
    """Participants, arming, ticks and the end of a run with deadlines; how it has ended. disarmed: a client arms it."""
    with ExitStack() as stack:
        interrupts = stack.enter_context(Interrupts())
        stack.enter_context(run.setup)
        claimed = _take_free_ports(stack, run, participants)
        c, plan, parts, rig = run.plan.config, run.plan, run.parts, run.parts.rig
        for bus in plan.buses:
            if bus.config.native:
                open_native(stack, run, bus)
            else:
                run.gateways[bus.name] = _open_gateway(stack, run, bus)
        if plan.buses:
            time.sleep(LISTEN_S)
        for bus in plan.buses:
            _listen_first(run, bus, participants)
            if bus.name not in claimed and not _claim(stack, bus):
                where = f"another bus for one of the two is set in [bus.{bus.name}] of {plan.path} (channel, port)"
                raise StartError(f"another rig of this computer is on {bus.place} as node {bus.database.node}; {where}")
        if c.vehicle is not None:
            run.link = _open_link(run)
            stack.callback(run.link.stop)
            run.link.start()
            if c.vehicle.started and participants == "config":
                setup = vehicle_json(vehicle_setup(plan))
                arguments = ["vehicle", c.vehicle.kind, "--setup", setup, "--endpoint", run.link.endpoint]
                start_participant(stack, run, "vehicle", arguments)
        if participants == "config":
            for unit in plan.started_units():
                given, shared = share_pins(run, unit, ecu_setup(plan, unit, run.folder.path))
                arguments = ["ecu", unit.config.kind, "--setup", setup_to_json(given)]
                start_participant(stack, run, unit.name, arguments, shared)
        open_io(stack, run)
        links = [t for t in threading.enumerate() if t is run.link or t.name in ("can-rx", "can-tx")]
        run.took(*rtenv.set_fifo_threads(c.clock.fifo_priority - LINKS_BELOW, links))
        loop = _start_loop(stack, run)
        _wait_for_peers(run, loop)
        shown = stack.enter_context(Progress(progress, plan, parts, round(run.folder.duration_s / c.clock.tick_s)))
        stack.enter_context(run.recorder)
        run.took(rtenv.freeze_gc())
        above = min(99, c.clock.fifo_priority + 1) if c.clock.fifo_priority else 0
        watchdog = Watchdog(rig, c.safe_state.watchdog_s, above)
        run.folder.write(state="running", realtime=run.realtime())
        # it sees the idle wakes as well; started before arming, no thread begins beside the first ticks
        watchdog.start()
        stack.callback(watchdog.stop)
        _tell_doubts(run)
        interrupts.begin(rig.stop)
        run.control.ready(disarmed)
        if disarmed and progress:
            print("disarmed: no tick before `torqueloop control arm`", file=sys.stderr, flush=True)
        state = _look_after(run, loop, watchdog, shown)
        interrupts.over = True
        return "interrupted" if interrupts.came and state == "ended" else state


def _tell_doubts(run: LiveRun) -> None:
    """Say what is assumed of the messages of a real bus before anything is sent there; the report says it as well."""
    for bus in run.plan.buses:
        if bus.config.interface not in SOFTWARE_BUSES and bus.doubts:
            text = f"bus {bus.name} ({bus.place}): not known well, check against your car: {'; '.join(bus.doubts)}"
            print(text, file=sys.stderr, flush=True)
            run.degrade(text)


def _open_gateway(stack: ExitStack, run: LiveRun, bus: BusPlan) -> CanGateway:
    parts, rig = run.parts.bus(bus.name), run.parts.rig
    try:
        port = open_bus(bus.config.bus(bus.database.has_fd))
    except CanBusError as error:
        raise StartError(f"{error}; [bus.{bus.name}] of {run.plan.path}") from None
    gateway = CanGateway(
        port,
        parts.rx_ring,
        parts.tx_ring,
        own_ids=bus.own_ids,
        bell=True,
        on_failure=lambda text: run.fail("thread", f"CAN gateway of bus {bus.name}: {text}"),
    )
    gateway.start()
    stack.callback(gateway.stop)
    # the bell is taken from the tick before the gateway closes it
    stack.callback(rig.set_bell, bus.number, 0)
    rig.set_bell(bus.number, gateway.bell_fd)
    return gateway


def _open_link(run: LiveRun) -> RigLink:
    v = run.plan.config.vehicle
    assert v is not None
    try:
        keys = curve_keys(run.plan.path, v.server_key, v.client_keys)
        parts, tick_s = run.parts, run.plan.config.clock.tick_s
        return RigLink(v.endpoint, parts.vehicle_out, parts.vehicle_in, tick_s, keys, carriers=parts.carriers,
                       carrier_slot=parts.carrier_in, age_limit_s=v.age_limit_s,
                       every=1 if run.plan.vehicle is None else run.plan.vehicle.every)  # fmt: skip
    except PeerError as error:
        raise StartError(f"{error}; [vehicle] endpoint of {run.plan.path}: port 0 takes any free one") from None


def _listen_first(run: LiveRun, bus: BusPlan, participants: str) -> None:
    """No node may be on the bus that sends what this rig, or a control unit that it will start, is to send."""
    plan, parts, gateway = run.plan, run.parts.bus(bus.name), run.gateways.get(bus.name)
    name = gateway.port.name if gateway is not None else bus.place
    # the native port judges what it reads, the gateway has done so in its thread
    heard = others(parts.port) if parts.port is not None else {frame[0] for frame in parts.rx_ring.pop_all()}
    where = f"{name}: another bus for one of the two is set in [bus.{bus.name}] of {plan.path} (channel, port)"
    if run.foreign(bus.name):
        raise StartError(f"another rig is on the bus, it sends {run.foreign(bus.name)}; {where}")
    units = [unit for unit in plan.units if bus.name in unit.buses]
    # where one of them is there already, as hardware, it is heard
    if units and all(unit.config.started for unit in units) and participants == "config":
        names = [m.name for m in bus.database.rx_messages if bus_id(m) in heard]
        if names:
            raise StartError(
                f"a control unit is on the bus already, it sends {', '.join(names)}; run with --no-participants to use "
                f"it. Bus: {where}"
            )


def _take_free_ports(stack: ExitStack, run: LiveRun, participants: str) -> set[str]:
    """Names of the software buses that are claimed: those between this rig and units it starts itself, for which the
    file gives no port. They take the first port that no other rig of this computer has: runs go side by side."""
    plan, claimed = run.plan, set()
    for bus in plan.buses:
        units = [unit for unit in plan.units if bus.name in unit.buses]
        alone = participants == "config" and units and all(unit.config.started for unit in units)
        if not alone or bus.config.interface != "udp_multicast" or bus.config.port is not None:
            continue
        for port in range(DEFAULT_PORT, DEFAULT_PORT + RIGS_AT_ONCE):
            own = replace(bus, config=bus.config.model_copy(update={"port": port}))
            if _claim(stack, own):
                run.plan = replace(run.plan, buses=[own if b is bus else b for b in run.plan.buses])
                claimed.add(bus.name)
                if port != DEFAULT_PORT:
                    text = f"bus {bus.name}: UDP port {port}, as another rig of this computer has {DEFAULT_PORT}"
                    print(text, file=sys.stderr, flush=True)
                break
    return claimed


def _claim(stack: ExitStack, bus: BusPlan) -> bool:
    """The bus belongs to one rig of this computer: two that listen at the same time receive each other only if both
    have begun to send. The name is gone with the process, however it ends. False: another rig has it."""
    if not sys.platform.startswith("linux"):
        return True
    can = bus.config.bus(bus.database.has_fd)
    place = f"{can.interface} {can.channel} {can.port if can.interface == 'udp_multicast' else ''} {bus.database.node}"
    held = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
    try:
        held.bind("\0torqueloop rig " + hashlib.sha256(place.encode()).hexdigest()[:32])
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        return False
    return True


def _start_loop(stack: ExitStack, run: LiveRun) -> threading.Thread:
    """Start the loop's thread, unarmed; returns once it wakes."""
    c = run.plan.config.clock
    run.took(*rtenv.prepare_process(c.lock_memory))

    def body() -> None:
        try:
            run.took(*rtenv.prepare_loop_thread(c.fifo_priority, c.cpu))
            run.parts.rig.run()
        except BaseException as error:
            run.note = run.note or f"loop thread: {type(error).__name__}: {error}"

    loop = threading.Thread(target=body, name="torqueloop-tick", daemon=True)
    loop.start()

    def end() -> None:
        run.parts.rig.stop()
        loop.join(0.0 if run.given_up else GIVE_UP_S)

    stack.callback(end)
    ready = time.monotonic() + GIVE_UP_S
    while run.parts.rig.heartbeat < 10:
        if not loop.is_alive() or time.monotonic() > ready:
            raise StartError(run.note or "the loop does not wake")
        time.sleep(0.002)
    return loop


def _wait_for_peers(run: LiveRun, loop: threading.Thread) -> None:
    """Before arming: the vehicle has answered, the control units have sent frames. StartError names who did not."""
    c = run.plan.config
    if run.link is not None and c.vehicle is not None:
        _wait_for_vehicle(run, run.link, c.vehicle.start_timeout_s)
    for bus in run.plan.buses:
        _wait_for_units(run, loop, bus)
    _wait_for_pins(run, loop)


def _say_waiting(timeout_s: float, what: str) -> None:
    """On standard error: what the rig did not start itself and waits for, and for how long at most."""
    print(f"waiting for {what}, at most {timeout_s:g} s", file=sys.stderr, flush=True)


def _wait_for_units(run: LiveRun, loop: threading.Thread, bus: BusPlan) -> None:
    """A frame must have been received on a bus with control units, or with required messages."""
    units = [unit for unit in run.plan.units if bus.name in unit.buses]
    if not units and not bus.required:
        return
    timeout = max((unit.config.start_timeout_s for unit in units), default=10.0)
    if absent := [unit.name for unit in units if unit.name not in run.participants]:
        _say_waiting(timeout, f"a frame of {', '.join(absent)} on {bus.place}")
    deadline, gateway = time.monotonic() + timeout, run.gateways.get(bus.name)
    while run.parts.rig.bus_counters(bus.number)["idle_frames"] == 0:
        for unit in units:
            participant = run.participants.get(unit.name)
            ended = participant.ended() if participant else None
            if ended is not None:
                raise StartError(f"process of control unit {unit.name} {ended}")
        if gateway is not None and not gateway.alive:
            raise StartError(f"CAN gateway of bus {bus.name}: {gateway.error}")
        if time.monotonic() > deadline or not loop.is_alive():
            raise StartError(
                f"no frame of a control unit on {bus.place} within {timeout:g} s: is it started?{_elsewhere(bus)}"
            )
        time.sleep(0.01)


def _wait_for_pins(run: LiveRun, loop: threading.Thread) -> None:
    """Each unit that has actuators has given values."""
    pins, began = SilentPins(run), time.monotonic()
    while silent := pins.first():
        name = silent[0]
        ended, patience_s = run.participants[name].ended(), run.plan.config.ecu[name].start_timeout_s
        if ended is not None:
            raise StartError(f"process of control unit {name} {ended}")
        if time.monotonic() > began + patience_s or not loop.is_alive():
            raise StartError(f"control unit {name} has given no values at its actuators within {patience_s:g} s")
        time.sleep(0.01)


def _elsewhere(bus: BusPlan) -> str:
    """A hint for those who send where this rig does not listen: python-can's own udp_multicast as it is by default."""
    c = bus.config
    if c.interface != "udp_multicast" or c.local_address != LOOPBACK:
        return ""
    return (
        f" This bus never leaves the computer (local_address {LOOPBACK}); python-can's own udp_multicast sends to the "
        f'network of the default route, and the rig receives it with local_address = "0.0.0.0" in [bus.{bus.name}]'
    )


def _wait_for_vehicle(run: LiveRun, link: RigLink, timeout_s: float) -> None:
    vehicle = run.participants.get("vehicle")
    if vehicle is None:
        _say_waiting(timeout_s, f"the vehicle model at {link.endpoint}")
    _, _, first = run.parts.vehicle_out.read()
    deadline = time.monotonic() + timeout_s
    while run.parts.vehicle_in.version == 0:
        # nobody may have been connected yet when it was offered last
        run.parts.vehicle_out.write(first, 0)
        ended = vehicle.ended() if vehicle else None
        failed = (
            f"{link.endpoint} {ended}" if ended else f"link thread failed: {link.failure}" if link.failure else None
        )
        if failed is None and time.monotonic() > deadline:
            refused = {k: n for k, n in link.rejected.items() if n}
            hint = f" (answers refused: {refused})" if refused else ": is it started?"
            failed = f"has not answered at {link.endpoint} within {timeout_s:g} s{hint}"
        if failed is not None:
            raise StartError(f"vehicle model {failed}")
        time.sleep(0.02)


def _look_after(run: LiveRun, loop: threading.Thread, watchdog: Watchdog, shown: Progress) -> str:
    """While the loop runs: failures of links, modes, progress, run.json; "ended", or "hung"."""
    state = "ended"
    refusals, senders = _Refusals(run), [_Sender(run, name) for name in run.gateways]
    pins = SilentPins(run)
    looked = time.monotonic()
    next_stats = looked + STATS_S
    give_up: float | None = None
    while loop.is_alive():
        loop.join(LOOK_S)
        now = time.monotonic()
        run.look_at_machine(now - looked - LOOK_S)
        looked = now
        run.modes.drain()
        run.look_at_recorder()
        _links(run, refusals, senders)
        pins.look()
        shown.update()
        if watchdog.hung and give_up is None:
            run.note = run.note or "the loop gave no heartbeat"
            give_up = time.monotonic() + GIVE_UP_S
        if give_up is not None and time.monotonic() > give_up and loop.is_alive():
            state, run.given_up = "hung", True
            break
        if time.monotonic() >= next_stats:
            next_stats += STATS_S
            run.save()
            rtenv.collect_young()
    run.modes.drain()
    run.look_at_recorder()
    return state


def _links(run: LiveRun, refusals: _Refusals, senders: list[_Sender]) -> None:
    """Ask for the safe state when a thread or process the rig depends on has gone."""
    for sender in senders:
        sender.look()
    for name, gateway in run.gateways.items():
        if gateway.port.bus_off:
            run.fail("bus", f"the CAN controller of bus {name} is bus off")
        elif not gateway.alive:
            run.fail("thread", f"CAN gateway of bus {name}: {gateway.error or 'a thread has ended'}")
    if run.link is not None and not run.link.is_alive():
        run.fail("thread", f"vehicle link: {run.link.failure or 'its thread has ended'}")
    for name, participant in run.participants.items():
        ended = participant.ended()
        if ended is not None and not run.parts.rig.finished:
            run.fail("thread", f"{name} process {ended}")
    refusals.look()


class _Sender:
    """Sees a sending thread that lives but hangs (in its driver): frames wait, and none goes out."""

    def __init__(self, run: LiveRun, bus: str) -> None:
        self._run, self._bus, self._sent, self._since = run, bus, -1, time.monotonic()

    def look(self) -> None:
        now, stats = time.monotonic(), self._run.gateways[self._bus].stats()
        ring = self._run.parts.bus(self._bus).tx_ring
        sent = stats.tx + stats.tx_failed
        if sent != self._sent or not len(ring):
            self._sent, self._since = sent, now
        elif now - self._since > SENDER_S:
            text = f"can-tx hangs, {len(ring)} frames wait for more than {SENDER_S:g} s"
            self._run.fail("thread", f"CAN gateway of bus {self._bus}: {text}")


class _Refusals:
    """Counts vehicle messages refused in a row by the link (schema, not finite, range): they never reach the tick."""

    def __init__(self, run: LiveRun) -> None:
        self._run, self._refused, self._accepted, self._in_row = run, 0, 0, 0

    def look(self) -> None:
        link, v = self._run.link, self._run.plan.config.vehicle
        if link is None or v is None:
            return
        refused, accepted = sum(link.rejected.values()), link.stats().accepted
        self._in_row = self._in_row + refused - self._refused if accepted == self._accepted else 0
        self._refused, self._accepted = refused, accepted
        if self._in_row >= v.refuse_limit:
            why = ", ".join(f"{k} {n}" for k, n in link.rejected.items() if n)
            self._run.fail("vehicle_data", f"{self._in_row} messages of the vehicle model refused in a row ({why})")
