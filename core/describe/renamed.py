"""Names that older files and recordings use, and what they are called now.

A file with an old signal, folder or kind is refused with the remedy, one with an old key or metric is read. Recordings
and results are read.
"""

from __future__ import annotations

import re
from typing import Any

#: first part of the name of a signal -> what it is called now
SIGNALS = {"manoeuvre.": "scenario.", "monitor.told_": "monitor.reported_"}
#: folder of configuration files -> what it is called now
FOLDERS = {"manoeuvres": "scenarios"}
#: what a file says of itself -> what it says now
KINDS = {"manoeuvre": "scenario"}
#: key of [monitors], and monitor -> what it is called now
MONITORS = {"told": "reported", "told_speed": "reported_speed", "told_pedal": "reported_pedal"}
#: metric, or the begin of one -> what it is called now
METRICS = {"slip_s": "lost_time_s", "stolen_ids": "foreign_frames", "peers_": "participants_"}
#: key of a file of results -> what it is called now
RESULTS = {**MONITORS, **METRICS, "peers": "participants", "stolen": "foreign"}

_SIGNAL = re.compile(rf"(?<![\w.])({'|'.join(map(re.escape, SIGNALS))})(?=[a-z])")
_NAMES = "|".join(name if name.endswith("_") else rf"{name}\b" for name in METRICS)
_METRIC = re.compile(rf"(?<![\w.])(can_(?:\w+_)?)?({_NAMES})")
_FOLDER = re.compile(rf"(?<![^/])({'|'.join(FOLDERS)})/")
_KIND = re.compile(rf"^(kind\s*=\s*)([\"'])({'|'.join(KINDS)})\2", re.MULTILINE)
#: a text of one line in a TOML file; a comment, in which nothing is changed
_TEXT = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'|#[^\n]*")


def signals_in(text: str) -> str:
    """The name of a signal, or a condition on signals, in today's names."""
    return _SIGNAL.sub(lambda m: SIGNALS[m[1]], text)


def metrics_in(text: str) -> str:
    """A condition on metrics in today's names."""
    return _METRIC.sub(lambda m: (m[1] or "") + METRICS[m[2]], text)


def keys_in(value: Any, names: dict[str, str]) -> Any:
    """Tables and lists of tables with today's keys. names: old key -> key."""
    if isinstance(value, dict):
        return {names.get(key, key): keys_in(one, names) for key, one in value.items()}
    return [keys_in(one, names) for one in value] if isinstance(value, list) else value


def file_in(name: str) -> str:
    """The name of a file with today's folders."""
    return _FOLDER.sub(lambda m: f"{FOLDERS[m[1]]}/", name)


def remedy(old: str, new: str) -> str | None:
    """What to do about an old name in a file; None: it is none."""
    return f"it is called {new!r} now; `torqueloop check --fix FILE` writes it so" if new != old else None


def migrated(text: str) -> str:
    """A TOML file in today's names: its kind, and the folders and signals in its texts."""

    def one(match: re.Match[str]) -> str:
        return match[0] if match[0][0] == "#" else file_in(signals_in(match[0][1:-1])).join((match[0][0], match[0][-1]))

    return _TEXT.sub(one, _KIND.sub(lambda m: f"{m[1]}{m[2]}{KINDS[m[3]]}{m[2]}", text))
