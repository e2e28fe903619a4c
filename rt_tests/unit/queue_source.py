"""A source of records for the recorder, fed from Python: the rig's are rings of the tick."""

from __future__ import annotations

import threading


class QueueSource:
    """A source fed from Python: `push` whole records from any thread. Bounded like a ring, never blocks."""

    def __init__(self, capacity: int = 8 << 20) -> None:
        self.capacity = capacity
        self.dropped = 0
        self.high_water = 0
        self._lock = threading.Lock()
        self._parts: list[bytes] = []
        self._size = 0

    def push(self, record: bytes) -> bool:
        """Queue one record; False (and counted) when the queue is full."""
        with self._lock:
            if self._size + len(record) > self.capacity:
                self.dropped += 1
                return False
            self._parts.append(bytes(record))
            self._size += len(record)
            self.high_water = max(self.high_water, self._size)
            return True

    def drain(self) -> bytes:
        """Everything queued, joined."""
        with self._lock:
            parts, self._parts, self._size = self._parts, [], 0
        return b"".join(parts)
