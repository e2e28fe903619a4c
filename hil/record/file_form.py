"""A form of a stream beside the recording itself, written by the recorder's thread: given up, with its cause, when
something is wrong with it, while the recording and the other forms go on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from torqueloop.hil.results.run import StreamStats


class FileForm:
    """Base: `_take` and `_close` do the work and may raise, `take` and `close` never do."""

    def __init__(self, run_dir: Path, name: str) -> None:
        self.name: str = name
        self.status: StreamStats = StreamStats()
        self._path: Path = run_dir / name
        self._over = False

    def take(self, payload: bytes, sync: bool) -> None:
        """Whole records. What goes wrong is in the status."""
        if self._over:
            self.status = replace(self.status, discarded_bytes=self.status.discarded_bytes + len(payload))
            return
        try:
            self._take(payload, sync)
        except Exception as error:
            self._give_up(error, len(payload))

    def close(self) -> None:
        """The last of it, and the file closed."""
        try:
            self._close()
        except Exception as error:
            self._give_up(error, 0)

    def _take(self, payload: bytes, sync: bool) -> None:
        raise NotImplementedError

    def _close(self) -> None:
        raise NotImplementedError

    def _give_up(self, error: Exception, lost: int) -> None:
        self._over = True
        cause = self.status.cause or f"{type(error).__name__}: {error}"
        self.status = replace(self.status, cause=cause, discarded_bytes=self.status.discarded_bytes + lost)
