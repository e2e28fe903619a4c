"""Control channel and telemetry of a run: opened before the recorder starts, closed after the last tick."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.control.server import ControlServer
from torqueloop.hil.link.child import start_module
from torqueloop.hil.link.endpoints import PeerError
from torqueloop.hil.rig.run.live_run import LiveRun
from torqueloop.hil.rig.run.telemetry import Telemetry
from torqueloop.hil.rig.schema.participants import curve_keys

ANY_PORT = "tcp://127.0.0.1:0"


@contextmanager
def control_channel(run: LiveRun, endpoint: str | None, say: bool, wanted: bool = False) -> Iterator[None]:
    """Serve the run at `endpoint`, or at that of its rig file; neither: at a free port if it is wanted."""
    table = run.plan.config.control
    endpoint = endpoint or (table.endpoint if table is not None else None) or (ANY_PORT if wanted else None)
    if endpoint is None:
        yield
        return
    try:
        keys = None if table is None else curve_keys(run.plan.path, table.server_key, table.client_keys)
        server = ControlServer(run.control, endpoint, keys)
    except PeerError as error:
        raise ConfigError(f"control channel: {error}", key="endpoint", value=endpoint) from None
    run.channel = server
    run.folder.write(control=server.endpoint)
    with _served("control", server, say):
        yield


@contextmanager
def telemetry_channel(run: LiveRun, endpoint: str | None, say: bool, wanted: bool = False) -> Iterator[None]:
    """Publish the run at `endpoint`, or at that of its rig file; neither: at a free port if it is wanted."""
    table = run.plan.config.telemetry
    endpoint = endpoint or table.endpoint or (ANY_PORT if wanted else None)
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
    with _served("telemetry", telemetry, say):
        yield


@contextmanager
def live_page(run: LiveRun, wanted: bool) -> Iterator[None]:
    """The live page of the run in a process of its own, opened in the browser; it ends with the run."""
    if not wanted:
        yield
        return
    process = start_module("torqueloop.hil.cli", "watch", str(run.folder.path), "--open")
    try:
        yield
    finally:
        process.terminate()
        process.wait()


@contextmanager
def _served(name: str, server: ControlServer | Telemetry, say: bool) -> Iterator[None]:
    if say:
        print(f"{name}: {server.endpoint}", file=sys.stderr, flush=True)
    server.start()
    try:
        yield
    finally:
        server.stop()
