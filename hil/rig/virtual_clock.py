"""A run on the virtual clock: peers in lockstep, as fast as the computer goes."""

from __future__ import annotations

import time
from contextlib import ExitStack

from torqueloop.hil.link.sockets import LockstepClient, PeerError
from torqueloop.hil.realtime import rtenv
from torqueloop.hil.rig.companions import Companion
from torqueloop.hil.rig.config import curve_keys, relative
from torqueloop.hil.rig.live_run import STATS_S, LiveRun, StartError, start_companion
from torqueloop.hil.rig.online.restore import Peers
from torqueloop.hil.rig.progress import Progress
from torqueloop.hil.rig.virtual_links import TcuStep, VehicleStep, VirtualTcu, VirtualVehicle, run_virtual, stats_of
from torqueloop.hil.tcu.config import TcuConfig
from torqueloop.hil.tcu.soft_tcu import SoftTcu


def run_virtual_clock(
    run: LiveRun,
    peers: str,
    progress: bool,
    vehicle: VehicleStep | None,
    tcu: TcuStep | None,
    tcu_config: TcuConfig | None,
) -> str:
    c, plan = run.plan.config, run.plan
    with ExitStack() as stack:
        virtual_vehicle = None
        if c.vehicle is not None:
            in_process = vehicle is not None
            virtual_vehicle = VirtualVehicle(run.parts, vehicle or _lockstep_vehicle(stack, run, peers))
            if not in_process:
                # its first answer is waited for here, before anything runs
                virtual_vehicle.before_tick(0)
                if virtual_vehicle.failure is not None:
                    raise StartError(virtual_vehicle.failure)
        virtual_tcu = None
        if c.tcu is not None:
            assert tcu_config is not None
            if tcu is None:
                tcu = SoftTcu(tcu_config)
            period = tcu_config.timing.period_s / c.clock.tick_s
            virtual_tcu = VirtualTcu(run.parts, tcu, max(1, round(period)), c.clock.tick_s)
        n_ticks = round(run.folder.info["duration_s"] / c.clock.tick_s)
        shown = stack.enter_context(Progress(progress, plan, run.parts, n_ticks))
        stack.enter_context(run.recorder)
        stack.enter_context(run.setup)
        run.took(rtenv.denormals(), rtenv.freeze_gc())
        run.folder.write(state="running", realtime=run.realtime())
        next_stats = time.monotonic() + STATS_S

        def every() -> None:
            nonlocal next_stats
            run.modes.drain()
            shown.update()
            if virtual_vehicle is not None and virtual_vehicle.failure and not run.note:
                run.note = virtual_vehicle.failure
            if time.monotonic() >= next_stats:
                next_stats = time.monotonic() + STATS_S
                run.save()
                rtenv.collect_young()
            run.look_at_recorder()
            # as fast as it goes may be faster than the disk: wait for the recorder rather than lose samples
            while len(run.parts.samples) > run.parts.samples.capacity // 2 and run.recorder.alive():
                time.sleep(0.002)

        state = "ended"
        run.began_s = time.monotonic()
        try:
            run.control.checkpoints.peers = Peers(run.parts, virtual_vehicle, virtual_tcu)
            between = run.control.checkpoints.between
            run_virtual(run.parts, n_ticks, virtual_vehicle, virtual_tcu, plan.period_ns, every, between=between)
        except KeyboardInterrupt:
            state = "interrupted"
        run.over_s = time.monotonic()
        every()
        if tcu is not None:
            run.peer_stats["tcu"] = stats_of(tcu)
    run.modes.drain()
    return state


def _lockstep_vehicle(stack: ExitStack, run: LiveRun, peers: str) -> VehicleStep:
    """The vehicle process in lockstep."""
    v = run.plan.config.vehicle
    assert v is not None
    companion: list[Companion] = []
    try:
        client = LockstepClient(
            v.endpoint,
            v.start_timeout_s,
            curve_keys(run.plan.path, v.server_key, v.client_keys),
            peer_dead=lambda: companion[0].ended() if companion else None,
        )
    except PeerError as error:
        raise StartError(f"{error}; [vehicle] endpoint of {run.plan.path}: port 0 takes any free one") from None
    stack.callback(client.close)
    run.lockstep = client
    if v.start is not None and peers == "config":
        path = str(relative(run.plan.path, v.start))
        companion.append(
            start_companion(stack, run, "vehicle", ["vehicle", path, "--endpoint", client.endpoint, "--lockstep"])
        )
    return client.exchange
