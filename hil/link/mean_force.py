"""The wheel force of a message: the mean since the message before, from the impulse."""

from __future__ import annotations


class MeanForce:
    """Mean of the tractive force over the time between two messages, (I - I_before)/(t - t_before).

    A vehicle that receives messages less often than the rig ticks gets the momentum that the driveline gave meanwhile;
    the force of the last tick would be a sample, which aliases what oscillates faster than the messages.
    """

    def __init__(self) -> None:
        self._before: tuple[float, float] | None = None

    def forget(self) -> None:
        """The next message has the mean of its own tick, as the first one has: the time has been set back."""
        self._before = None

    def of(self, t: float, impulse: float, of_tick: float) -> float:
        """For a message at t [s] with the impulse so far [N s]; of_tick: mean of the last tick alone [N]."""
        if self._before is None or t <= self._before[0]:
            return of_tick
        return (impulse - self._before[1]) / (t - self._before[0])

    def sent(self, t: float, impulse: float) -> None:
        """This message has been sent."""
        self._before = t, impulse
