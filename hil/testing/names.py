"""Short names of signals for tests: "gear", "pedal", "v" instead of the rig's own."""

from __future__ import annotations

from collections.abc import Mapping

from torqueloop.core.describe.errors import UnknownNameError, did_you_mean
from torqueloop.hil.rig.devices.signals import SignalTable

#: words for what rigs call differently: the end of the signal's name
WORDS = {"gear": "gear_actual", "target": "gear_target", "speed": "car.v", "acceleration": "car.a"}
#: computed from the recording (hil/report/jerk.py), not to be waited for
JERK = "jerk"


class Names:
    """Names of one rig. `own`: short names of the user's, before all others."""

    def __init__(self, table: SignalTable, own: Mapping[str, str] | None = None) -> None:
        self._table, self._own = table, dict(own or {})

    def full(self, name: str) -> str:
        """The signal that is meant: its full name, a short name of the user's, a word of WORDS, a signal of the driver,
        or the end of a name that only one signal has. UnknownNameError otherwise, also where several have it."""
        name = self._own.get(name, name)
        if name in self._table:
            return name
        if f"driver.{name}" in self._table:
            return f"driver.{name}"
        end = WORDS.get(name, name)
        if end in self._table:
            return end
        found = [known for known in self._table.names if known.endswith(f".{end}")]
        if len(found) == 1:
            return found[0]
        if found:
            raise UnknownNameError("several signals are called {value}", value=name, allowed=", ".join(found[:12]))
        known = [*self._table.names[2:], *WORDS, *self._own]
        raise UnknownNameError("the rig has no signal {value}", value=name, hint=did_you_mean(name, known))
