"""Names that older files and recordings use, and what they are called now.

A file with an old signal or folder is refused with the remedy, one with an old kind, key or metric is read. Recordings
and results are read. `torqueloop check --fix` writes today's names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

#: first part of the name of a signal -> what it is called now
SIGNALS = {"manoeuvre.": "scenario.", "monitor.told_": "monitor.reported_"}
#: folder of configuration files -> what it is called now
FOLDERS = {"manoeuvres": "scenarios"}
#: what a file says of itself -> what it says now
KINDS = {"manoeuvre": "scenario", "control unit": "tcu"}
#: metric, or the begin of one -> what it is called now
METRICS = {"slip_s": "lost_time_s", "stolen_ids": "foreign_frames", "peers_": "participants_"}
#: last part of a key in [monitors] -> what it is called now
_MONITORS = {"told": "reported", "told_speed": "reported_speed", "told_pedal": "reported_pedal"}
#: path of a key of [monitors] -> its last part now
MONITORS = {"told": "reported"} | {
    f"{table}.{old}": new for table in ("limit", "waive") for old, new in _MONITORS.items() if old != "told"
}
#: path of a key in a file of results -> its last part now; "*" stands for the name of a bus or a participant
RESULTS = {
    "monitors.told": "reported",
    "monitors.signals.told": "reported",
    "monitors.pairs.told": "reported",
    **{f"monitors.{table}.{old}": new for table in ("limits", "waived") for old, new in _MONITORS.items()},
    "stats.clock.slip_s": "lost_time_s",
    "stats.buses.*.stolen": "foreign",
    "stats.buses.*.gateway.stolen_ids": "foreign_frames",
    "stats.buses.*.native.stolen_ids": "foreign_frames",
    "stats.peers": "participants",
    "stats.peers.*.told": "reported",
}

_SIGNAL = re.compile(rf"(?<![\w.])({'|'.join(map(re.escape, SIGNALS))})(?=[a-z])")
_NAMES = "|".join(name if name.endswith("_") else rf"{name}\b" for name in METRICS)
_METRIC = re.compile(rf"(?<![\w.])(can_(?:\w+_)?)?({_NAMES})")
_FOLDER = re.compile(rf"(?<![^/])({'|'.join(FOLDERS)})/")
_KIND = re.compile(rf"^(kind\s*=\s*)([\"'])({'|'.join(KINDS)})\2", re.MULTILINE)
#: a key of [monitors] as a path, from the file's begin or from that of a table
_MONITOR = re.compile(rf"((?:^|\.)monitors\.(?:\w+\.)*)({'|'.join(_MONITORS)})$")
#: the line that begins a table of a TOML file, with its name
_HEADER = re.compile(r"^[ \t]*\[{1,2}([^\]\[\n=,]+)\]{1,2}[ \t]*(?:#.*)?$", re.MULTILINE)
#: in a TOML file: a text of one line; a comment, in which nothing is changed; a key
_TOKEN = re.compile(
    r"\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'|#[^\n]*|(?P<begin>^[ \t]*)?(?P<key>[\w.-]+)(?=[ \t]*=)", re.MULTILINE
)
#: tables with conditions on metrics and expressions of them
_OF_METRICS = ("gates", "metrics", "objective")


def signals_in(text: str) -> str:
    """The name of a signal, or a condition on signals, in today's names."""
    return _SIGNAL.sub(lambda m: SIGNALS[m[1]], text)


def metrics_in(text: str) -> str:
    """A condition on metrics in today's names."""
    return _METRIC.sub(lambda m: (m[1] or "") + METRICS[m[2]], text)


def keys_in(value: Any, paths: Mapping[str, str]) -> Any:
    """Tables and lists of tables with today's keys. paths: path of an old key -> its last part now."""
    if isinstance(value, list):
        return [keys_in(one, paths) for one in value]
    if not isinstance(value, dict):
        return value
    made = {}
    for key, one in value.items():
        steps = ((path.partition("."), new) for path, new in paths.items())
        inside = {rest: new for (first, _, rest), new in steps if first in (key, "*")}
        made[inside.pop("", key)] = keys_in(one, inside)
    return made


def file_in(name: str) -> str:
    """The name of a file with today's folders."""
    return _FOLDER.sub(lambda m: f"{FOLDERS[m[1]]}/", name)


def remedy(old: str, new: str) -> str | None:
    """What to do about an old name in a file; None: it is none."""
    return f"it is called {new!r} now; `torqueloop check --fix FILE` writes it so" if new != old else None


def migrated(text: str) -> str:
    """A TOML file in today's names: its kind, its keys, and the folders, signals and metrics in its texts."""
    text = _KIND.sub(lambda m: f"{m[1]}{m[2]}{KINDS[m[3]]}{m[2]}", text)
    heads = [*_HEADER.finditer(text)]
    begins = [0, *(head.start() for head in heads), len(text)]
    names = ["", *(head[1].strip() for head in heads)]
    return "".join(_table_in(name, text[a:b]) for name, a, b in zip(names, begins[:-1], begins[1:], strict=True))


def _table_in(table: str, text: str) -> str:
    """The lines of a table of this name."""
    # the key that a line begins with, and the last one: another one in an inline table
    line = last = ""

    def one(match: re.Match[str]) -> str:
        nonlocal line, last
        found = match[0]
        if match["key"] is not None:
            last = match["key"]
            line = last if match["begin"] is not None else line
            path = ".".join(filter(None, (table, line, last if last != line else "")))
            old = _MONITOR.search(path)
            return found if old is None else found.removesuffix(old[2]) + _MONITORS[old[2]]
        if found[0] == "#":
            return found
        new = file_in(signals_in(_MONITOR.sub(lambda m: m[1] + _MONITORS[m[2]], found[1:-1])))
        if (table or line).partition(".")[0] in _OF_METRICS and last != "signal":
            new = metrics_in(new)
        return new.join((found[0], found[-1]))

    return _TOKEN.sub(one, text)
