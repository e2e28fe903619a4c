"""One line of the examination."""

from __future__ import annotations

from typing import Any, Literal

from torqueloop.core.describe.classes import dataclass

Level = Literal["ok", "note", "fail"]


@dataclass(frozen=True)
class Finding:
    """What one look has found.

    ok: as it should be; note: real time works, but could be better; fail: the rig cannot run here in real time.
    """

    name: str
    level: Level
    text: str
    #: what would make it better
    advice: str = ""
    #: numbers behind the text, for the JSON output
    values: dict[str, Any] | None = None

    def as_dict(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if v not in (None, "")}
