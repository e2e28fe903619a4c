"""`torqueloop watch`: a page in the browser that shows a running rig."""

from __future__ import annotations

import os
import threading
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from torqueloop.core.describe.errors import ConfigError, TorqueloopError
from torqueloop.hil.cli.common import command, error_console, out_console
from torqueloop.hil.cli.control import KeyOption, ServerKeyOption


@command
def watch(
    endpoint: Annotated[
        str | None,
        typer.Argument(metavar="[ENDPOINT]", help="Control channel of the rig, or its run directory; default: the "
                       "newest run in ./runs that has not ended."),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the page, on 127.0.0.1; 0: any free port.")] = 0,
    open_page: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = False,
    key: KeyOption = None,
    server_key: ServerKeyOption = None,
) -> None:  # fmt: skip
    """Show a running rig in the browser (gear, speeds, lever diagram, deadlines, bus), and drive it (docs/watch.md)."""
    from torqueloop.hil.watch.server import WatchServer
    from torqueloop.hil.watch.source import Source

    source = Source(_endpoint(endpoint), key, server_key)
    source.start()
    _keep_off(source.hello)
    try:
        server = WatchServer(source, port)
    except OSError as error:
        source.stop()
        raise ConfigError("no page at port {value}: " + str(error.strerror), key="port", value=port,
                          allowed="a free port, or 0") from None  # fmt: skip
    out_console.print(server.url, soft_wrap=True, highlight=False)
    if not source.hello.get("telemetry"):
        error_console.print("the rig has no telemetry (--telemetry tcp://127.0.0.1:0): values 10 times a second",
                            soft_wrap=True, highlight=False)  # fmt: skip
    thread = threading.Thread(target=server.serve_forever, name="watch-http", daemon=True)
    thread.start()
    if open_page:
        webbrowser.open(server.url)
    try:
        while thread.is_alive():
            thread.join(1.0)
    finally:
        server.closing = True
        server.shutdown()
        server.server_close()
        source.stop()


def _endpoint(text: str | None) -> str:
    """The control channel that is meant."""
    from torqueloop.hil.results.files import read_run_info

    if text is not None and "://" in text:
        return text
    if text is not None:
        folders = [Path(text)]
    else:
        root = Path("runs")
        folders = sorted((p for p in root.iterdir() if os.path.isdir(p)), reverse=True) if os.path.isdir(root) else []
    for folder in folders:
        try:
            info = read_run_info(folder)
        except TorqueloopError:
            if text is not None:
                raise
            continue  # of another version, or no run at all
        if info is not None and info.control and (text is not None or info.state == "running"):
            return info.control
    if text is not None:
        raise ConfigError("{value} has no control channel", key="endpoint", value=text,
                          allowed="tcp://host:port, or the directory of a run with --control")  # fmt: skip
    raise ConfigError("no run with a control channel is running in ./runs", key="endpoint", value="",
                      hint="torqueloop run --control tcp://127.0.0.1:0 --telemetry tcp://127.0.0.1:0")  # fmt: skip


def _keep_off(hello: dict[str, Any]) -> None:
    """Run this process with low priority, and not on the CPU of the rig's loop."""
    cpu = hello.get("cpu")
    with suppress(OSError, AttributeError):
        others = os.sched_getaffinity(0) - {cpu}
        if others:
            os.sched_setaffinity(0, others)
    with suppress(OSError):
        os.nice(5)
