"""A process that writes the safe values of I/O devices when the process of the rig has died without doing so.

It reads the set-ups of the devices as one line of JSON, answers "ready", and waits. The line "closed" ends it: the rig
has closed its devices itself. The end of the input without this line means that the rig is dead, whatever killed it:
each device is opened anew, which puts its outputs at their safe values, and closed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence

from torqueloop.hil.io.library import IoSetup, OpenDevice
from torqueloop.hil.link.endpoints import PeerError

#: how long the process may take to begin or to end [s]
PATIENCE_S = 20.0


class Guardian:
    """The process, seen from the rig. It has a session of its own: a signal to the rig's terminal does not end it."""

    def __init__(self, setups: Sequence[IoSetup]) -> None:
        command = [sys.executable, "-m", "torqueloop.hil.io.guardian"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                         start_new_session=True)  # fmt: skip
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps([setup.plain() for setup in setups]) + "\n")
        self._process.stdin.flush()
        if self._process.stdout.readline() != "ready\n":
            raise PeerError(f"the guardian of the I/O devices has ended with status {self._process.wait(PATIENCE_S)}")

    def alive(self) -> bool:
        """It waits."""
        return self._process.poll() is None

    def end(self, closed: bool) -> None:
        """closed: the devices have been closed by the rig; otherwise it writes their safe values now."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            if closed:
                self._process.stdin.write("closed\n")
            self._process.stdin.close()
        except BrokenPipeError:
            pass
        self._process.wait(PATIENCE_S)
        self._process.stdout.close()


def main() -> int:
    """Entry point of the process."""
    setups = [IoSetup.of(data) for data in json.loads(sys.stdin.readline())]
    print("ready", flush=True)
    if sys.stdin.readline() == "closed\n":
        return 0
    status = 0
    for setup in setups:
        try:
            OpenDevice(setup).close()
            print(f"I/O device {setup.name}: the rig has died, its outputs are safe", file=sys.stderr, flush=True)
        except PeerError as error:
            status = 1
            print(f"I/O device {setup.name}: the rig has died: {error}", file=sys.stderr, flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
