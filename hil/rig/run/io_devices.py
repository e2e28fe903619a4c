"""I/O devices of a run: opened before anything is armed, closed with safe values whatever happens."""

from __future__ import annotations

from contextlib import ExitStack

from torqueloop.cython_kernels.tick.io import IoDevices
from torqueloop.hil.io.guardian import Guardian
from torqueloop.hil.io.library import OpenDevice
from torqueloop.hil.link.endpoints import PeerError
from torqueloop.hil.rig.devices.io import IoCards
from torqueloop.hil.rig.run.live_run import LiveRun, StartError

#: a rig whose loop stands still for so many watchdog_s has hung or is stopped: its guardian writes the safe values
STILL = 2.0


def open_io(stack: ExitStack, run: LiveRun) -> None:
    """Open all devices, and connect them to the tick. They are closed, with their outputs at the safe values, when the
    stack unwinds: behind the end of the loop where this is called before its start."""
    cards, made = run.plan.device(IoCards), run.parts.made[IoCards]
    if made is None:
        return
    setups = cards.setups(run.folder.path, simulated=not run.real)
    guardian = None
    try:
        watched = [setup for setup in setups.values() if setup.outputs]
        if run.real and watched:
            guardian = Guardian(watched, STILL * run.plan.config.safe_state.watchdog_s)
            stack.callback(_end_guardian, run, guardian)
    except (PeerError, OSError) as error:
        raise StartError(str(error)) from None
    files = []
    for k, (name, setup) in enumerate(setups.items()):
        try:
            opened = OpenDevice(setup)
        except PeerError as error:
            raise StartError(f"I/O device {name}: {error}; [io.{name}] of {run.plan.path}") from None
        stack.callback(_close, run, made, k, opened)
        files.append(opened.watch_file)
        limit_s = cards.given.io[name].limit_us * 1e-6 if run.real else 0.0
        made.connect(k, device=opened.device or 0, watch=opened.watch, limit_s=limit_s, **opened.functions)
    if guardian is not None:
        guardian.watch(files)


def _close(run: LiveRun, made: IoDevices, number: int, opened: OpenDevice) -> None:
    if run.given_up:
        # the loop may be inside the library: the guardian writes the safe values once this process has ended
        return
    made.disconnect(number)
    if not opened.close():
        run.degrade(f"I/O device {opened.setup.name} has not taken the safe values at the end")


def _end_guardian(run: LiveRun, guardian: Guardian) -> None:
    if not guardian.alive():
        run.degrade("the guardian of the I/O devices has ended before the rig")
    if not run.given_up and not guardian.end():
        run.degrade("the guardian of the I/O devices does not answer: it has been killed")
