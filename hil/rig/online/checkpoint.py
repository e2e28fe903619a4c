"""Checkpoints: the complete state of a rig between two ticks, as a file.

    TLCHKPT3 | SHA-256 of what follows | msgpack map

The map holds what the checkpoint belongs to (rig, digest of the model, signal names, sizes), the parameters that were
changed, the image of the rig (signals, state of the kernel, impulse, counters of the bus, driver tables, limits, held
signals, tick, hash) and, on the virtual clock, the state of the participants in the rig's process. Nothing is
unpickled. A file of another version, rig or model is refused, and so is one that was truncated or changed.
"""

from __future__ import annotations

import hashlib
import math
import os
from dataclasses import asdict, field, fields
from pathlib import Path
from typing import Any

import msgpack

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError, TorqueloopError
from torqueloop.core.describe.reading import read_bytes
from torqueloop.cython_kernels.tick.control import Image
from torqueloop.hil.rig.assemble.parts import RigParts
from torqueloop.hil.rig.resolve.plan import RigPlan

#: first bytes of a file; the last one is the version: 3 holds faults and the frames they hold back
MAGIC = b"TLCHKPT3"
#: ending of the files
SUFFIX = ".tlc"
#: a longer file is none of ours
FILE_BYTES = 64_000_000


class CheckpointError(TorqueloopError):
    """A file is no checkpoint, or one of another rig or model."""


@dataclass(frozen=True)
class Checkpoint:
    """What a file holds."""

    rig: str
    #: digest of the model as the files describe it, before any change of parameters
    model: str
    #: digest of the names of all signals
    signals: str
    sizes: list[int]
    tick: int
    tick_s: float
    #: parameters that were changed at run time, SI
    parameters: dict[str, float]
    image: bytes
    #: state of the participants in this process, frames on their way to them; empty on the real clock
    participants: dict[str, Any] = field(default_factory=dict)


def capture(plan: RigPlan, image: Image, parameters: dict[str, float], participants: dict[str, Any]) -> Checkpoint:
    """The checkpoint of an image that was taken."""
    return Checkpoint(
        plan.config.rig.name,
        plan.compiled.digest(),
        _signals(plan),
        list(image.sizes),
        image.tick,
        plan.config.clock.tick_s,
        dict(parameters),
        image.to_bytes(),
        participants,
    )


@dataclass
class Quota:
    """What the checkpoints of a run take up."""

    count: int = 0
    bytes: int = 0


def write(path: Path, checkpoint: Checkpoint, quota: Quota | None = None) -> None:
    """Write a file: whole, or not at all. `quota`: counts it."""
    body = bytes(msgpack.packb(asdict(checkpoint), use_bin_type=True))
    part = path.with_name(path.name + ".part")
    with part.open("wb") as stream:
        stream.write(MAGIC + hashlib.sha256(body).digest() + body)
        stream.flush()
        os.fsync(stream.fileno())
    part.replace(path)
    if quota is not None:
        quota.count += 1
        quota.bytes += len(body)


def read(path: Path) -> Checkpoint:
    """Read and check a file by itself; CheckpointError with the reason."""
    try:
        data = read_bytes(path, FILE_BYTES)
    except ConfigError as error:
        raise CheckpointError(str(error)) from None
    head = len(MAGIC)
    if data[: head - 1] != MAGIC[:-1]:
        raise CheckpointError(f"{path}: not a checkpoint")
    if data[:head] != MAGIC:
        version = data[head - 1 : head].decode("ascii", "replace")
        raise CheckpointError(f"{path}: version {version}; this program reads {MAGIC[-1:].decode()}")
    body = data[head + 32 :]
    if hashlib.sha256(body).digest() != data[head : head + 32]:
        raise CheckpointError(f"{path}: truncated or changed, the checksum is wrong")
    try:
        content = msgpack.unpackb(body, raw=False, strict_map_key=True, max_ext_len=0)
        # until version 0.2 the participants were called peers
        checkpoint = Checkpoint(**{"participants" if key == "peers" else key: value for key, value in content.items()})
    except Exception as error:  # msgpack raises many kinds
        raise CheckpointError(f"{path}: not a checkpoint: {type(error).__name__}: {error}") from None
    wanted = {f.name: f.type for f in fields(Checkpoint)}
    kinds = {"rig": str, "model": str, "signals": str, "sizes": list, "tick": int, "tick_s": float}
    kinds |= {"parameters": dict, "image": bytes, "participants": dict}
    for name in wanted:
        if not isinstance(getattr(checkpoint, name), kinds[name]):
            raise CheckpointError(f"{path}: {name} is not what a checkpoint holds")
    numbers = checkpoint.parameters.values()
    if not all(type(x) in (int, float) and math.isfinite(x) for x in numbers):
        raise CheckpointError(f"{path}: its parameters are no finite numbers")
    if not all(type(n) is int for n in checkpoint.sizes):
        raise CheckpointError(f"{path}: its sizes are no whole numbers")
    return checkpoint


def image_of(checkpoint: Checkpoint, plan: RigPlan, parts: RigParts, where: str) -> Image:
    """The image for this rig; CheckpointError if it belongs to another one."""
    own = plan.config.rig.name
    if checkpoint.rig != own:
        raise CheckpointError(f"{where}: a checkpoint of rig {checkpoint.rig!r}, this is {own!r}")
    if checkpoint.model != plan.compiled.digest():
        raise CheckpointError(
            f"{where}: a checkpoint of another model ({checkpoint.model[:12]}, this rig's is "
            f"{plan.compiled.digest()[:12]}): its powertrain files have changed"
        )
    if checkpoint.tick_s != plan.config.clock.tick_s:
        raise CheckpointError(f"{where}: tick {checkpoint.tick_s} s, this rig's is {plan.config.clock.tick_s} s")
    image = Image(parts.rig.image_sizes())
    if checkpoint.signals != _signals(plan) or tuple(checkpoint.sizes) != image.sizes:
        raise CheckpointError(f"{where}: its signals, drivers or messages are not those of this rig file")
    try:
        image.from_bytes(checkpoint.image)
        image.check_hints([len(t) for _, t, _ in plan.drivers])
    except ValueError as error:
        raise CheckpointError(f"{where}: {error}") from None
    return image


def _signals(plan: RigPlan) -> str:
    return hashlib.sha256("\n".join(plan.table.names).encode()).hexdigest()
