"""The telemetry of a run: opened before the recorder starts, closed after the last tick."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.link.endpoints import PeerError
from torqueloop.hil.rig.run.live_run import LiveRun
from torqueloop.hil.rig.run.telemetry import Telemetry
from torqueloop.hil.rig.schema.participants import curve_keys


@contextmanager
def telemetry_channel(run: LiveRun, endpoint: str | None, say: bool) -> Iterator[None]:
    """Publish the run at `endpoint`, or at that of its rig file; neither: nothing is opened."""
    table = run.plan.config.telemetry
    endpoint = endpoint or table.endpoint
    if endpoint is None:
        yield
        return
    try:
        keys = curve_keys(run.plan.path, table.server_key, table.client_keys)
        telemetry = Telemetry(run.plan, endpoint, keys, run.real)
    except PeerError as error:
        raise ConfigError(f"telemetry: {error}", key="endpoint", value=endpoint) from None
    run.telemetry = telemetry
    run.recorder.tap("signals", telemetry.tap)
    run.control.telemetry = telemetry.endpoint
    run.folder.write(telemetry=telemetry.endpoint)
    if say:
        print(f"telemetry: {telemetry.endpoint}", file=sys.stderr, flush=True)
    telemetry.start()
    try:
        yield
    finally:
        telemetry.stop()
