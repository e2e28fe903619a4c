"""Taking and restoring checkpoints of a rig that runs, or is about to.

On the real clock the tick takes its image, and the participants continue in their present state. On the virtual clock
the participants in the rig's process return as well: the session's loop saves or loads them between two ticks, before
the tick that takes the image, so that a restored run is equal to the first one, to the bit.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from torqueloop.core.describe.errors import TorqueloopError
from torqueloop.cython_kernels.tick.control import Control, Image
from torqueloop.hil.control.messages import RequestError
from torqueloop.hil.rig.assemble.parts import RigParts
from torqueloop.hil.rig.assemble.virtual_links import VirtualUnits, VirtualVehicle
from torqueloop.hil.rig.online.checkpoint import (
    SUFFIX,
    Checkpoint,
    CheckpointError,
    Quota,
    capture,
    image_of,
    read,
    write,
)
from torqueloop.hil.rig.online.parameters import Parameters, Prepared
from torqueloop.hil.rig.resolve.plan import RigPlan

#: folder of the checkpoints in the run directory
FOLDER = "control"
#: how the copies begin that a replay goes back to
RESTORED = "restored-"
#: checkpoints that a run keeps at a client's request, and bytes of all of them with the copies
COUNT_MAX, BYTES_MAX = 200, 512_000_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class Participants:
    """The participants on the virtual clock, and the frames on their way to the control units."""

    def __init__(self, vehicle: VirtualVehicle | None, units: VirtualUnits) -> None:
        self._vehicle, self._units = vehicle, units

    def save(self) -> dict[str, Any]:
        """State of all participants as plain data. Between two ticks."""
        return {"vehicle": self._vehicle.save() if self._vehicle else None, "units": self._units.save()}

    def load(self, data: dict[str, Any], where: str) -> dict[str, bool]:
        """Return to the state of the checkpoint `where`; the participants that returned. Between two ticks."""
        try:
            vehicle = {"vehicle": self._vehicle.load(data.get("vehicle"))} if self._vehicle else {}
            return {**vehicle, **self._units.load(data.get("units") or {})}
        except (KeyError, TypeError, ValueError, TorqueloopError) as error:
            text = str(error) if isinstance(error, TorqueloopError) else repr(error)
            raise RequestError("refused", f"{where}: its participants are not those of this rig: {text}") from None


class Transactions(Protocol):
    """What checkpoints need of the rig they are of (RigControl)."""

    plan: RigPlan
    parts: RigParts
    #: run directory
    folder: Path
    control: Control
    parameters: Parameters

    def accept(self, prepared: Prepared) -> None: ...
    def exchange(self, at: int, post: Callable[[], None]) -> int: ...
    def journal(self, **entry: Any) -> int: ...


class Checkpoints:
    """Checkpoints of one rig."""

    def __init__(self, rig: Transactions, real: bool) -> None:
        self._rig, self._real = rig, real
        #: those of the virtual clock, once the session has them
        self.participants: Participants | None = None
        self._job: tuple[int, Callable[[], int]] | None = None
        self._lock = threading.Lock()
        self._quota = Quota()
        #: what went wrong in the last job
        self.error: Exception | None = None
        #: the job that waits is the start of the run: nobody else asks how it went
        self._starting = False
        #: what a start left as it was, in words
        self.remarks: list[str] = []

    # --- jobs between two ticks of the virtual clock ----------------------------------------------------------------
    def between(self) -> int:
        """Called by the session's loop before the participants of each tick: do what waits; the simulated tick that
        comes."""
        tick = self._rig.parts.rig.sim_tick
        if self._job is None or self._job[0] > tick:
            return tick
        with self._lock:
            job, self._job = self._job, None
            if job is None:
                return tick
            try:
                return job[1]()
            except RequestError as error:
                if self._starting:
                    raise CheckpointError(f"the run cannot begin at its checkpoint: {error}") from None
                self.error = error
            except Exception as error:
                self.error = error
                if self._starting:
                    raise CheckpointError(f"the run cannot begin at its checkpoint: {error}") from None
            finally:
                self._starting = False
        return tick

    def put(self, at: int, job: Callable[[], int]) -> None:
        """Have a job done between two ticks; on the real clock, now."""
        self.error = None
        if self._real:
            job()
        else:
            self._job = (at, job)

    @property
    def waiting(self) -> bool:
        """A job has not been done yet."""
        with self._lock:
            return self._job is not None

    def withdraw(self) -> bool:
        """Take back a job that waits."""
        with self._lock:
            waited, self._job = self._job is not None, None
        return waited

    # --- taking and restoring ---------------------------------------------------------------------------------------
    def take(self, name: str, at: int) -> dict[str, Any]:
        """Keep the whole state under a name: name, file, tick."""
        rig, plan, parts = self._rig, self._rig.plan, self._rig.parts
        if name:
            self._check(name)
            if name.startswith(RESTORED):
                raise RequestError("refused", f"name {name!r}: a replay needs the files {RESTORED}N; another name")
        if self._quota.count >= COUNT_MAX or self._quota.bytes >= BYTES_MAX:
            kept = f"{self._quota.count} checkpoints of {self._quota.bytes} bytes are kept"
            raise RequestError("refused", f"{kept}; allowed in a run: {COUNT_MAX}, {BYTES_MAX} bytes")
        if parts.rig.state != "armed":
            raise RequestError("refused", f"no checkpoint: the rig is {parts.rig.state}, allowed: armed")
        image = Image(parts.rig.image_sizes())
        participants: dict[str, Any] = {}

        def job() -> int:
            if self.participants is not None:
                participants.update(self.participants.save())
            rig.control.post([], at if self._real else -1, target=image)
            return int(parts.rig.sim_tick)

        rig.exchange(at, lambda: self.put(at, job))
        name = name or f"tick-{image.tick}"
        path = self.path(name)
        path.parent.mkdir(exist_ok=True)
        write(path, capture(plan, image, rig.parameters.values, participants), self._quota)
        return {"name": name, "file": str(path.relative_to(rig.folder)), "tick": image.tick}

    def restore(self, name: str, at: int) -> dict[str, Any]:
        """Return to a checkpoint of this run: tick from which it continues, participants that returned."""
        self._check(name)
        if not os.path.isfile(self.path(name)):
            known = sorted(p.name.removesuffix(SUFFIX) for p in self.path(name).parent.glob(f"*{SUFFIX}"))
            raise RequestError("refused", f"no checkpoint {name!r}; there are: {', '.join(known) or 'none'}")
        if self._rig.parts.rig.state != "armed":
            raise RequestError("refused", f"nothing was restored: the rig is {self._rig.parts.rig.state}")
        gone: dict[str, bool] = {}
        accept, job = self._prepare(read(self.path(name)), str(self.path(name)), at, gone)
        tick = self._rig.exchange(at, lambda: self.put(at, job))
        accept()
        return {"tick": tick, "participants": gone}

    def start_from(self, path: Path) -> int:
        """Begin the run at a checkpoint: its tick. Before arming."""
        checkpoint = read(path)
        gone: dict[str, bool] = {}
        try:
            accept, restored = self._prepare(checkpoint, str(path), -1, gone)
        except RequestError as error:
            raise CheckpointError(f"{path}: {error}") from None
        self._tell_vehicle(image_of(checkpoint, self._rig.plan, self._rig.parts, str(path)))

        def job() -> int:
            tick = restored()
            self.remarks += [f"{name} has not gone back to the checkpoint: it cannot" for name, went in gone.items()
                             if not went]  # fmt: skip
            return tick

        self._starting = not self._real
        self.put(-1, job)
        accept()
        return checkpoint.tick

    def _prepare(
        self, checkpoint: Checkpoint, where: str, at: int, gone: dict[str, bool]
    ) -> tuple[Callable[[], None], Callable[[], int]]:
        """What to do once it is in effect, and the job that posts it."""
        rig, real = self._rig, self._real
        image = image_of(checkpoint, rig.plan, rig.parts, where)
        prepared = None
        if checkpoint.parameters != rig.parameters.values:
            prepared = rig.parameters.prepare(checkpoint.parameters, whole=True)
        if self._quota.bytes >= BYTES_MAX:
            raise RequestError("refused", f"checkpoints of {self._quota.bytes} bytes are kept; allowed: {BYTES_MAX}")
        reference = rig.journal(parameters=checkpoint.parameters if prepared else None, links=not real)
        # a copy of its own: the checkpoint may be written again before the run is replayed
        write(rig.folder / FOLDER / f"{RESTORED}{reference}{SUFFIX}", checkpoint, self._quota)
        swap: dict[str, Any] = {}
        if prepared is not None:
            swap = {"model": prepared.model, "state": prepared.state, "gains": prepared.gains}

        def job() -> int:
            if self.participants is not None:
                gone.update(self.participants.load(checkpoint.participants, where))
            self._tell_vehicle(image)
            rig.control.post([], at if real else -1, reference, source=image, links=not real, **swap)
            return image.tick

        return (lambda: rig.accept(prepared) if prepared else None), job

    def _tell_vehicle(self, image: Image) -> None:
        """Before the first tick, the vehicle receives the rig of the checkpoint. While no tick runs."""
        vehicle, rig = self._rig.plan.vehicle, self._rig.parts.rig
        if vehicle is None or (self._real and rig.armed):
            return
        held = image.held()
        slots = [self._rig.plan.table.slot("rig.time"), vehicle.force_slot, vehicle.impulse_slot]
        slots += [vehicle.speed_slot, vehicle.distance_slot, vehicle.brake_slot, *vehicle.more]
        values = [held.get(slot, image.signal(slot)) for slot in slots]
        self._rig.parts.vehicle_out.write([0.0 if self._real else float(image.tick), *values], 0)

    def path(self, name: str) -> Path:
        """File of a checkpoint of this run."""
        return self._rig.folder / FOLDER / f"{name}{SUFFIX}"

    def _check(self, name: str) -> None:
        if not _NAME.fullmatch(name):
            raise RequestError("refused", f"name {name!r}; allowed: up to 64 letters, digits, '_', '.', '-'")
