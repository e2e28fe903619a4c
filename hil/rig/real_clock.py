"""A run on the real clock: gateway, vehicle link and companions up, loop thread awake, peers heard; then armed and
looked after.

Everything is entered on one ExitStack, in the order it is needed, and stopped in the reverse order, whatever happens.
"""

from __future__ import annotations

import json
import threading
import time
from contextlib import ExitStack

from torqueloop.hil.can.bus import CanBusError, CanGateway, open_bus
from torqueloop.hil.can.database import bus_id
from torqueloop.hil.link.sockets import PeerError, RigLink
from torqueloop.hil.realtime import rtenv
from torqueloop.hil.rig.config import curve_keys, relative
from torqueloop.hil.rig.live_run import (
    GIVE_UP_S,
    LINKS_BELOW,
    LOOK_S,
    STATS_S,
    LiveRun,
    StartError,
    start_companion,
)
from torqueloop.hil.rig.native_can import heard as others
from torqueloop.hil.rig.native_can import open_native
from torqueloop.hil.rig.progress import Progress
from torqueloop.hil.rig.safe_state import Watchdog

#: the bus is listened to for this long before anything is sent: 25 cycles of a message of 10 ms [s]
LISTEN_S = 0.25
#: frames that wait so long while none goes out: the sending thread hangs. Far above any cycle time, below what fills
#: the ring [s]
SENDER_S = 2.0


def run_real_clock(run: LiveRun, peers: str, progress: bool) -> str:
    c, plan, parts, rig = run.plan.config, run.plan, run.parts, run.parts.rig
    with ExitStack() as stack:
        stack.enter_context(run.setup)
        if c.can is not None:
            if c.can.native:
                open_native(stack, run)
            else:
                run.gateway = _open_gateway(stack, run)
            _listen_first(run, peers)
        if c.vehicle is not None:
            run.link = _open_link(run)
            stack.callback(run.link.stop)
            run.link.start()
            if c.vehicle.start is not None and peers == "config":
                path = str(relative(plan.path, c.vehicle.start))
                start_companion(stack, run, "vehicle", ["vehicle", path, "--endpoint", run.link.endpoint])
        if c.tcu is not None and peers == "config":
            start_companion(stack, run, "tcu", ["tcu", str(relative(plan.path, c.tcu.start)), *_tcu_bus(run)])
        links = [t for t in threading.enumerate() if t is run.link or t.name in ("can-rx", "can-tx")]
        run.took(*rtenv.set_fifo_threads(c.clock.fifo_priority - LINKS_BELOW, links))
        loop = _start_loop(stack, run)
        _wait_for_peers(run, loop)
        shown = stack.enter_context(
            Progress(progress, plan, parts, round(run.folder.info["duration_s"] / c.clock.tick_s))
        )
        stack.enter_context(run.recorder)
        run.took(rtenv.freeze_gc())
        above = min(99, c.clock.fifo_priority + 1) if c.clock.fifo_priority else 0
        watchdog = Watchdog(rig, c.safe_state.watchdog_s, above)
        run.folder.write(state="running", realtime=run.realtime())
        rig.arm()
        watchdog.start()
        stack.callback(watchdog.stop)
        return _look_after(run, loop, watchdog, shown)


def _open_gateway(stack: ExitStack, run: LiveRun) -> CanGateway:
    can, database = run.plan.config.can, run.plan.database
    assert can is not None and database is not None
    try:
        port = open_bus(can.bus(database.has_fd))
    except CanBusError as error:
        raise StartError(f"{error}; [can] of {run.plan.path}") from None
    gateway = CanGateway(
        port,
        run.parts.rx_ring,
        run.parts.tx_ring,
        own_ids=database.own_ids,
        bell=True,
        on_failure=lambda text: run.fail("thread", f"CAN gateway: {text}"),
    )
    gateway.start()
    stack.callback(gateway.stop)
    # the bell is taken from the tick before the gateway closes it
    stack.callback(run.parts.rig.set_bell, 0)
    run.parts.rig.set_bell(gateway.bell_fd)
    return gateway


def _open_link(run: LiveRun) -> RigLink:
    v = run.plan.config.vehicle
    assert v is not None
    try:
        keys = curve_keys(run.plan.path, v.server_key, v.client_keys)
        return RigLink(v.endpoint, run.parts.vehicle_out, run.parts.vehicle_in, run.plan.config.clock.tick_s, keys)
    except PeerError as error:
        raise StartError(f"{error}; [vehicle] endpoint of {run.plan.path}: port 0 takes any free one") from None


def _tcu_bus(run: LiveRun) -> list[str]:
    """Arguments that put the control unit on the rig's bus, where the rig file says so."""
    c = run.plan.config
    assert c.can is not None and c.tcu is not None
    return ["--bus", json.dumps(c.can.place())] if c.tcu.bus == "rig" else []


def _listen_first(run: LiveRun, peers: str) -> None:
    """Nobody may be on the bus already who sends what this rig, or the control unit it will start, is to send."""
    plan = run.plan
    assert plan.database is not None and plan.config.can is not None
    time.sleep(LISTEN_S)
    name = run.gateway.port.name if run.gateway is not None else f"socketcan {plan.config.can.channel}"
    # the native port judges what it reads, the gateway has done so in its thread
    heard = others(run) if run.gateway is None else {frame[0] for frame in run.parts.rx_ring.pop_all()}
    where = f"{name}: another bus for one of the two is set in [can] of {plan.path} (channel, port)"
    if run.stolen():
        raise StartError(f"another rig is on the bus, it sends {run.stolen()}; {where}")
    if plan.config.tcu is not None and peers == "config":
        names = [m.name for m in plan.database.rx_messages if bus_id(m) in heard]
        if names:
            raise StartError(
                f"a control unit is on the bus already, it sends {', '.join(names)}; run with --no-peers to use it. "
                f"Bus: {where}"
            )


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
    """Before arming: the vehicle has answered, the TCU has sent frames. StartError names who did not."""
    c, rig = run.plan.config, run.parts.rig
    if run.link is not None and c.vehicle is not None:
        _wait_for_vehicle(run, run.link, c.vehicle.start_timeout_s)
    if c.tcu is not None or (c.can is not None and c.can.rx_timeout_s):
        timeout = c.tcu.start_timeout_s if c.tcu is not None else 10.0
        deadline = time.monotonic() + timeout
        tcu = run.companions.get("tcu")
        while rig.idle_frames == 0:
            ended = tcu.ended() if tcu else None
            if ended is not None:
                raise StartError(f"TCU process {ended}")
            if run.gateway is not None and not run.gateway.alive:
                raise StartError(f"CAN gateway: {run.gateway.error}")
            if time.monotonic() > deadline or not loop.is_alive():
                assert c.can is not None
                raise StartError(
                    f"no frame of a control unit on {c.can.interface} {c.can.channel} within {timeout:g} s: "
                    "is it started?"
                )
            time.sleep(0.01)


def _wait_for_vehicle(run: LiveRun, link: RigLink, timeout_s: float) -> None:
    vehicle = run.companions.get("vehicle")
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
    """While the loop runs: failures of links, modes, progress, run.json. Ctrl-C stops the loop cleanly."""
    state, rig = "ended", run.parts.rig
    refusals, sender = _Refusals(run), _Sender(run)
    next_stats = time.monotonic() + STATS_S
    give_up: float | None = None
    while loop.is_alive():
        try:
            loop.join(LOOK_S)
            run.modes.drain()
            run.look_at_recorder()
            _links(run, refusals, sender)
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
        except KeyboardInterrupt:
            state = "interrupted"
            rig.stop()
    run.modes.drain()
    run.look_at_recorder()
    return state


def _links(run: LiveRun, refusals: _Refusals, sender: _Sender) -> None:
    """Ask for the safe state when a thread or process the rig depends on has gone."""
    sender.look()
    if run.gateway is not None:
        if run.gateway.port.bus_off:
            run.fail("bus", "the CAN controller is bus off")
        elif not run.gateway.alive:
            run.fail("thread", f"CAN gateway: {run.gateway.error or 'a thread has ended'}")
    if run.link is not None and not run.link.is_alive():
        run.fail("thread", f"vehicle link: {run.link.failure or 'its thread has ended'}")
    for name, companion in run.companions.items():
        ended = companion.ended()
        if ended is not None and not run.parts.rig.finished:
            run.fail("thread", f"{name} process {ended}")
    refusals.look()


class _Sender:
    """Sees a sending thread that lives but hangs (in its driver): frames wait, and none goes out."""

    def __init__(self, run: LiveRun) -> None:
        self._run, self._sent, self._since = run, -1, time.monotonic()

    def look(self) -> None:
        gateway = self._run.gateway
        if gateway is None:
            return
        now, stats = time.monotonic(), gateway.stats()
        sent = int(stats["tx"] or 0) + int(stats["tx_failed"] or 0)
        if sent != self._sent or not len(self._run.parts.tx_ring):
            self._sent, self._since = sent, now
        elif now - self._since > SENDER_S:
            waiting = len(self._run.parts.tx_ring)
            self._run.fail("thread", f"CAN gateway: can-tx hangs, {waiting} frames wait for more than {SENDER_S:g} s")


class _Refusals:
    """Counts vehicle messages refused in a row by the link (schema, not finite, range): they never reach the tick."""

    def __init__(self, run: LiveRun) -> None:
        self._run, self._refused, self._accepted, self._in_row = run, 0, 0, 0

    def look(self) -> None:
        link, v = self._run.link, self._run.plan.config.vehicle
        if link is None or v is None:
            return
        refused, accepted = sum(link.rejected.values()), link.stats()["accepted"]
        self._in_row = self._in_row + refused - self._refused if accepted == self._accepted else 0
        self._refused, self._accepted = refused, accepted
        if self._in_row >= v.refuse_limit:
            why = ", ".join(f"{k} {n}" for k, n in link.rejected.items() if n)
            self._run.fail("vehicle_data", f"{self._in_row} messages of the vehicle model refused in a row ({why})")
