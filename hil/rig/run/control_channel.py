"""The control channel of a run: opened before arming, closed after the last tick."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.control.server import ControlServer
from torqueloop.hil.link.endpoints import PeerError
from torqueloop.hil.rig.schema.participants import curve_keys

if TYPE_CHECKING:
    from torqueloop.hil.rig.run.live_run import LiveRun


@contextmanager
def control_channel(run: LiveRun, endpoint: str | None, say: bool) -> Iterator[None]:
    """Serve the run at `endpoint`, or at that of its rig file; neither: nothing is opened."""
    table = run.plan.config.control
    if endpoint is None and table is None:
        yield
        return
    try:
        keys = None if table is None else curve_keys(run.plan.path, table.server_key, table.client_keys)
        server = ControlServer(run.control, endpoint or (table.endpoint if table else ""), keys)
    except PeerError as error:
        raise ConfigError(f"control channel: {error}", key="endpoint", value=endpoint) from None
    run.channel = server
    run.folder.write(control=server.endpoint)
    if say:
        print(f"control: {server.endpoint}", file=sys.stderr, flush=True)
    server.start()
    try:
        yield
    finally:
        server.stop()
