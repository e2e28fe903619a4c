"""A process that writes the safe values of I/O devices when the process of the rig has died or stands still.

It reads the set-ups of the devices as one line of JSON, answers "ready", and waits. A second line names the files of
their watch words. The line "closed" ends it: the rig has closed its devices itself. The end of the input without this
line means that the rig is dead, whatever killed it: each device is opened anew, which puts its outputs at their safe
values, and closed. The same is done when a watch word says that the loop runs, but its count stands still: the process
is stopped, or the loop hangs. The word `taken` then keeps the rig at safe values if it goes on.
"""

from __future__ import annotations

import json
import mmap
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence

from torqueloop.hil.io.library import RUNS, CWatch, IoSetup, OpenDevice
from torqueloop.hil.link.child import start_module
from torqueloop.hil.link.endpoints import PeerError

#: how long the process may take to begin or to end [s]
PATIENCE_S = 20.0
#: the watch words are looked at this often [s]
LOOK_S = 0.05
#: a device that refuses is asked again after this [s]
RETRY_S = 0.01
#: a count that stands still is seen in so many looks at least: one late look is no sign
LOOKS = 3


class Guardian:
    """The process, seen from the rig. It has a session of its own: a signal to the rig's terminal does not end it.

    still_s: the loop stands still for so long before the guardian acts.
    """

    def __init__(self, setups: Sequence[IoSetup], still_s: float) -> None:
        self._process = start_module("torqueloop.hil.io.guardian", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     text=True, start_new_session=True)  # fmt: skip
        assert self._process.stdin is not None and self._process.stdout is not None
        self._tell(json.dumps({"setups": [setup.plain() for setup in setups], "still_s": still_s}))
        if self._process.stdout.readline() != "ready\n":
            raise PeerError(f"the guardian of the I/O devices has ended with status {self._process.wait(PATIENCE_S)}")

    def watch(self, files: Sequence[str]) -> None:
        """The devices are open; files: of their watch words."""
        self._tell(json.dumps(list(files)))

    def alive(self) -> bool:
        """It waits."""
        return self._process.poll() is None

    def end(self) -> bool:
        """The devices have been closed by the rig. False: the process does not end by itself, and is killed."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._tell("closed")
            self._process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            return False
        finally:
            self._process.stdout.close()
        return True

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()


def make_safe(setups: Iterable[IoSetup], what: str, patience_s: float = 0.0) -> bool:
    """Open each device anew and close it; what: has happened to the rig. False: one of them refuses.

    patience_s: one that refuses is asked again for so long. A process that dies closes its files one by one: its end is
    seen here before it has released its devices."""
    done, until = True, time.monotonic() + patience_s
    for setup in setups:
        said = False
        while True:
            try:
                OpenDevice(setup).close()
                print(f"I/O device {setup.name}: the rig {what}, its outputs are safe", file=sys.stderr, flush=True)
                break
            except PeerError as error:
                if time.monotonic() >= until:
                    done = False
                    print(f"I/O device {setup.name}: the rig {what}: {error}", file=sys.stderr, flush=True)
                    break
                if not said:
                    said = True
                    print(f"I/O device {setup.name}: the rig {what}: {error}; it is asked again for {patience_s:g} s",
                          file=sys.stderr, flush=True)  # fmt: skip
            time.sleep(RETRY_S)
    return done


def looks_of(still_s: float) -> int:
    """Looks in so long a time."""
    return max(LOOKS, round(still_s / LOOK_S))


class Beats:
    """The watch words of a rig."""

    def __init__(self, files: Iterable[str]) -> None:
        self._words = []
        for file in files:
            with open(file, "r+b") as stream:
                self._words.append(CWatch.from_buffer(mmap.mmap(stream.fileno(), mmap.PAGESIZE)))
        self._last: list[int] = []
        self._still = 0

    def stand_still(self) -> int:
        """Looks in a row, this one included, at which the loop runs but no count has changed. A pause of the whole
        computer is one look."""
        now = [word.beats for word in self._words]
        runs = any(word.state == RUNS for word in self._words)
        self._still = self._still + 1 if runs and now == self._last else 0
        self._last = now
        return self._still

    def take(self) -> None:
        """The rig writes safe values only, if it goes on."""
        for word in self._words:
            word.taken = 1

    @property
    def taken(self) -> bool:
        """The guardian has acted."""
        return any(word.taken for word in self._words)


def _take_lines(lines: queue.SimpleQueue[str]) -> None:
    """Everything that comes, and an empty line for the end of the input."""
    line = "begun"
    while line:
        line = sys.stdin.readline()
        lines.put(line)


def main() -> int:
    """Entry point of the process."""
    told = json.loads(sys.stdin.readline())
    setups = [IoSetup.of(data) for data in told["setups"]]
    looks, rig, beats = looks_of(told["still_s"]), os.getppid(), Beats([])
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_take_lines, args=(lines,), daemon=True).start()
    print("ready", flush=True)
    while True:
        try:
            line = lines.get(timeout=LOOK_S)
        except queue.Empty:
            if not beats.taken and beats.stand_still() >= looks and os.getppid() == rig:
                beats.take()
                if not make_safe(setups, "stands still"):
                    # the hardware belongs to a process that does not answer
                    os.kill(rig, signal.SIGKILL)
            continue
        if line == "closed\n":
            # no thread may be reading when Python ends
            lines.get()
            return 0
        if not line:
            return int(not make_safe(setups, "has died", PATIENCE_S))
        beats = Beats(json.loads(line))


if __name__ == "__main__":
    sys.exit(main())
