"""What a control unit was told last: the fields it listens to, decoded by cantools, in SI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cantools.database.can import Message
from golden_units import si

#: fields of the rig's own messages -> quantity
OWN = {"n_engine": "w_engine", "n_turbine": "w_turbine", "n_output": "w_out", "pedal": "pedal", "T_oil": "T_oil"}


class Told:
    """Quantities of a control unit; what comes over a maker's bus counts before its own."""

    def __init__(self, receive: Mapping[str, Any]) -> None:
        """receive: of its interface file, quantity -> signal."""
        self._receive = {q: t if isinstance(t, dict) else {"signal": t} for q, t in receive.items()}
        self._own: dict[str, float] = {}
        self._maker: dict[str, float] = {}
        self.lever = "N"
        #: the lever came over a maker's bus; value of a lever that sends movements
        self._maker_lever, self._moved = False, 0.0

    @property
    def numbers(self) -> dict[str, float]:
        """Quantity -> value."""
        return {**self._own, **self._maker}

    def take(self, message: Message, values: Mapping[str, float]) -> None:
        """A frame that it hears."""
        units = {s.name: s.unit for s in message.signals}
        if message.name in ("HIL_Speeds", "HIL_Driver"):
            self._own |= {quantity: si(values[name], units[name]) for name, quantity in OWN.items() if name in values}
            if "lever" in values and not self._maker_lever:
                choices = message.get_signal_by_name("lever").choices or {}
                self.lever = str(choices[int(values["lever"])])
        for quantity, table in self._receive.items():
            of, _, name = table["signal"].rpartition(".")
            if of != message.name or name not in values:
                continue
            if quantity == "lever":
                self._lever(table, values[name], values)
            else:
                x = si(values[name], units[name])
                self._maker[quantity] = table.get("gain", 1.0) * x + table.get("offset", 0.0)

    def _lever(self, table: Mapping[str, Any], x: float, values: Mapping[str, float]) -> None:
        first, self._maker_lever = not self._maker_lever, True
        if "words" in table:
            self.lever = next((w for w, v in table["words"].items() if v == x), self.lever)
            return
        if first:
            self.lever = "P"  # a lever that sends movements begins there
        move = table["moves"].get(f"{x:g}") if x != self._moved else None
        if "park" in table and values.get(table["park"]) == table.get("park_value", 1.0):
            self.lever = "P"
        elif move is not None:
            self.lever = move if isinstance(move, str) else move.get(self.lever, self.lever)
        self._moved = x
