"""Door to the heartbeat of a loop; see heartbeat.pxd."""


cdef class Heartbeat:
    """Handed out by the owner of a loop; keeps it alive."""

    @property
    def beats(self) -> int:
        """Wakes so far."""
        return self.h.beats if self.h != NULL else 0
