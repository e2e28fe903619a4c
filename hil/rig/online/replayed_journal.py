"""Models and checkpoints a run went on with, found again for its replay."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from torqueloop.core.describe.errors import ConfigError, TorqueloopError
from torqueloop.core.describe.reading import JSON_BYTES, read_text
from torqueloop.hil.rig.assemble.parts import RigParts
from torqueloop.hil.rig.online.checkpoint import SUFFIX, image_of, read
from torqueloop.hil.rig.online.parameters import Parameters
from torqueloop.hil.rig.online.restore import FOLDER, RESTORED
from torqueloop.hil.rig.online.rig_control import JOURNAL
from torqueloop.hil.rig.resolve.plan import RigPlan


class JournalError(TorqueloopError):
    """The journal of a run is missing or does not hold what its input records refer to."""


def serve_references(run_dir: Path, plan: RigPlan, parts: RigParts, kernel: str) -> None:
    """Let a rig that is replayed stage what its input records refer to."""
    entries = _read(run_dir / JOURNAL)
    parameters = Parameters(plan, kernel)

    def stage(reference: int) -> None:
        entry = entries.get(reference)
        if entry is None:
            raise JournalError(f"{run_dir / JOURNAL}: no entry {reference}, which an input record refers to")
        swap: dict[str, Any] = {}
        if entry["parameters"] is not None:
            prepared = parameters.prepare(entry["parameters"], whole=True)
            parameters.accept(prepared)
            swap = {"model": prepared.model, "state": prepared.state, "gains": prepared.gains}
            parts.model, parts.state = prepared.model, prepared.state
        if "links" in entry:
            path = run_dir / FOLDER / f"{RESTORED}{reference}{SUFFIX}"
            swap |= {"source": image_of(read(path), plan, parts, str(path)), "links": bool(entry["links"])}
        parts.control.stage(**swap)

    parts.control.serve_references(stage)


def _read(path: Path) -> dict[int, dict[str, Any]]:
    if not os.path.isfile(path):
        return {}
    entries = {}
    try:
        lines = read_text(path, JSON_BYTES).splitlines()
    except ConfigError as error:
        raise JournalError(str(error)) from None
    for line in lines:
        try:
            entry = json.loads(line)
            if not isinstance(entry["parameters"], dict | None):
                raise TypeError
            entries[int(entry["reference"])] = entry
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            raise JournalError(f"{path}: line {line[:60]!r} is no entry of a journal") from None
    return entries
