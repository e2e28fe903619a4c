"""The one place where files that people write are read: what kind of file, how long, which encoding, how deep.

A configuration comes from anywhere. Whatever it is (a pipe, a device, a gigabyte, another encoding, brackets in
brackets in brackets, a number of 5000 digits) reading it takes bounded time and memory, and ends in the content or in
a ConfigError that names the file.
"""

from __future__ import annotations

import csv
import errno
import json
import os
import re
import stat
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import Any

from torqueloop.core.describe import renamed
from torqueloop.core.describe.errors import ConfigError, RangeError

#: longest TOML file: 20 times the longest of ours; its reader takes a second for this much [bytes]
TOML_BYTES = 1 << 20
#: TOML text up to this length stays in memory with its content; the longest of ours has 20 kB [characters]
KEPT_CHARACTERS = 1 << 16
#: longest table: 100 000 rows of three numbers [bytes]
CSV_BYTES = 4 << 20
#: longest CAN database; those of whole cars have 10 MB [bytes]
DATABASE_BYTES = 64 << 20
#: longest file of results (run.json, report.json) [bytes]
JSON_BYTES = 64 << 20
#: tables in tables, and lists in lists, at most
NESTING = 32
#: files that include or extend each other, one in the other, and all of them together
DEPTH, FILES = 16, 128
#: whole numbers of TOML: 64 bits
_INTEGERS = (-(1 << 63), (1 << 63) - 1)


#: files outside this folder are not read; None: any is
_ONLY: ContextVar[Path | None] = ContextVar("the only folder that is read", default=None)


#: folder of installed files -> what a file in it says of itself: `kind = "rig"`
KIND_OF_FOLDER = {
    "rigs": "rig", "tcu": "tcu", "vehicles": "vehicle", "hydraulics": "hydraulics", "interfaces": "interface",
    "scenarios": "scenario", "studies": "study", "trees": "tree", "sketches": "sketch",
    "gearboxes": "gearbox", "powertrains": "driveline", "drives": "drive",
}  # fmt: skip
#: kinds of files that hold a driveline, or a part of one that others include
DRIVELINES = ("driveline", "gearbox", "drive", "part")
#: all that `kind` may be; the last is the list in configs/topologies.toml
KINDS = (*dict.fromkeys(KIND_OF_FOLDER.values()), "part", "topologies")


@contextmanager
def reading_only(folder: Path) -> Iterator[None]:
    """Within this, a file outside the folder is an error: a recording must not depend on what is elsewhere now."""
    token = _ONLY.set(Path(os.path.realpath(folder)))
    try:
        yield
    finally:
        _ONLY.reset(token)


def open_regular(path: Path | str) -> int:
    """Descriptor of a regular file, for reading; ConfigError for anything else, without waiting for it."""
    if "\0" in str(path):
        raise ConfigError("no file has a zero byte in its name", value=str(path))
    only = _ONLY.get()
    if only is not None and not Path(os.path.realpath(path)).is_relative_to(only):
        raise ConfigError("this file is not part of the recording", file=str(path), allowed=f"files in {only}")
    try:
        # a pipe without a writer would hold up an ordinary open for ever
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        raise ConfigError("file not found", file=str(path)) from None
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise ConfigError(f"cannot read: {error.strerror} (ulimit -n)", file=str(path)) from None
        raise ConfigError(f"cannot read: {error.strerror}", file=str(path)) from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        what = "a folder" if stat.S_ISDIR(status.st_mode) else "a pipe, socket or device"
        raise ConfigError(f"cannot read: {what}", file=str(path), allowed="a regular file")
    return descriptor


def read_bytes(path: Path | str, limit: int) -> bytes:
    """The content of a regular file of at most `limit` bytes; ConfigError for anything else, without waiting for it."""
    with os.fdopen(open_regular(path), "rb") as stream:
        try:
            # the size may be a lie (/proc), or grow meanwhile
            data = stream.read(limit + 1)
        except OSError as error:
            raise ConfigError(f"cannot read: {error.strerror}", file=str(path)) from None
    if len(data) > limit:
        raise ConfigError("file is too long", file=str(path), allowed=f"at most {limit} bytes")
    return data


def read_text(path: Path | str, limit: int, encoding: str = "utf-8") -> str:
    """The content as text; ConfigError with line and byte where it is not in this encoding."""
    data = read_bytes(path, limit)
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        what = f"byte 0x{data[error.start]:02x} in line {line}"
        raise ConfigError(f"not {encoding.upper()} text: {what}", file=str(path)) from None


def read_toml(path: Path | str, parse_float: Callable[[str], Any] = float, *kinds: str) -> dict[str, Any]:
    """A TOML file as nested dicts, its nesting, whole numbers and texts within what the rest is made for, without its
    `kind`. kinds: those that the reader takes; ConfigError where the file says that it is another one."""
    data = read_whole(path, parse_float)
    said = data.pop("kind", None)
    said = renamed.KINDS.get(said, said) if isinstance(said, str) else said
    if said is None or (isinstance(said, str) and said in (kinds or KINDS)):
        return data
    if said in KINDS:
        raise ConfigError(f"this file is a {said}", file=str(path), key="kind", value=said, allowed=", ".join(kinds))
    raise ConfigError("{key} = {value} is no kind of file", file=str(path), key="kind", value=said,
                      allowed=", ".join(KINDS))  # fmt: skip


def read_whole(path: Path | str, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """A TOML file with all its keys, `kind` among them."""
    text = read_text(path, TOML_BYTES)
    try:
        data = parse_toml(text, parse_float)
    except ConfigError as error:
        raise error.located(file=str(path)) from None
    check_content(data, str(path))
    return data


def parse_toml(text: str, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """TOML text as nested dicts, which belong to the caller; ConfigError where it is none."""
    try:
        read = _parsed if len(text) <= KEPT_CHARACTERS else _parsed.__wrapped__
        return {key: _copied(value) for key, value in read(text, parse_float).items()}
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"not TOML: {error}") from None
    except RecursionError:
        raise ConfigError("nested too deeply", allowed=f"at most {NESTING} levels") from None
    except (ValueError, ArithmeticError) as error:  # a number of 5000 digits
        raise ConfigError(f"not TOML: {error}") from None


@lru_cache(maxsize=128)
def _parsed(text: str, parse_float: Callable[[str], Any]) -> dict[str, Any]:
    """TOML text as nested dicts; a run reads most of its files more than once."""
    _check_keys(text)
    return tomllib.loads(text, parse_float=parse_float)


def _copied(value: Any) -> Any:
    """Tables and lists are new ones; what they hold cannot change."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


#: strings, which may be parts of a key; names joined by dots
_QUOTED, _DOTTED = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'"), re.compile(r"[\w-]+(?:[ \t]*\.[ \t]*[\w-]+)*")


def _check_keys(text: str) -> None:
    """ConfigError for a key of too many parts, before it is read: the reader keeps each beginning of it, so 20 000
    parts in 40 kB take 1.6 GB."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.count(".") >= NESTING and any(
            m.group().count(".") >= NESTING for m in _DOTTED.finditer(_QUOTED.sub("q", line))
        ):
            raise ConfigError(f"a key of too many parts in line {number}", allowed=f"at most {NESTING} levels")


def check_content(data: dict[str, Any], file: str | None) -> None:
    """RangeError for content that no file of ours has, with its dotted place. Without recursion: it may be deep."""
    waiting: list[tuple[tuple[str, ...], Any]] = [((), data)]
    while waiting:
        place, value = waiting.pop()
        problem = allowed = None
        if len(place) > NESTING:
            problem, allowed, value = "nested too deeply", f"at most {NESTING} levels", None
        elif isinstance(value, str) and "\0" in value:
            problem, allowed = "{key}: a text with a zero byte", "printable characters"
        elif isinstance(value, int) and not _INTEGERS[0] <= value <= _INTEGERS[1]:
            problem, allowed, value = "{key}: a whole number of more than 64 bits", "-2^63 .. 2^63 - 1", None
        if problem is not None:
            table, key = ".".join(place[:-1])[:200] or None, place[-1][:100] if place else None
            raise RangeError(problem, file=file, table=table, key=key, value=value, allowed=allowed)
        if isinstance(value, dict):
            for key in value:
                if "\0" in key:
                    raise RangeError("a key with a zero byte", file=file, key=key, allowed="printable characters")
            waiting += [((*place, key), item) for key, item in value.items()]
        elif isinstance(value, list):
            waiting += [((*place, str(k)), item) for k, item in enumerate(value)]


def read_csv(path: Path | str) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """(header, [(line, cells)]) of a table: lines that begin with # are comments, the first other one is the header."""
    lines = read_text(path, CSV_BYTES).splitlines()
    kept = [(n, line) for n, line in enumerate(lines, 1) if line.strip() and not line.lstrip().startswith("#")]
    if not kept:
        raise ConfigError("no rows", file=str(path))
    rows: list[tuple[int, list[str]]] = []
    for number, line in kept:
        try:
            rows.append((number, [cell.strip() for cell in next(csv.reader([line]))]))
        except csv.Error as error:
            raise ConfigError(f"line {number}: {error}", file=str(path)) from None
    return rows[0][1], rows[1:]


def read_json(path: Path | str) -> Any:
    """A JSON file of results; ConfigError where it is none."""
    text = read_text(path, JSON_BYTES)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ConfigError(f"not JSON: {why}", file=str(path)) from None


class Family:
    """Files that include or extend each other: no circle, not too deep, not too many in all."""

    def __init__(self, key: str, circle: str) -> None:
        """`key`: of the file that names the next one; `circle`: what is said of a circle."""
        self.key: str = key
        self.circle: str = circle
        self.count: int = 0

    def enter(self, path: Path, chain: Sequence[Path]) -> Path:
        """The real place of the next file; ConfigError where it must not be read. `chain`: the real ones around it."""
        where = Path(os.path.realpath(path))
        file = str(path)
        if where in chain:
            loop = " -> ".join(p.name for p in (*chain[chain.index(where) :], where))
            raise ConfigError(f"{self.circle}: {loop}", file=file, key=self.key)
        self.count += 1
        if len(chain) >= DEPTH:
            raise ConfigError("{key}: files in files in files", file=file, key=self.key, allowed=f"{DEPTH} levels")
        if self.count > FILES:
            raise ConfigError("{key}: too many files", file=file, key=self.key, allowed=f"{FILES} in all")
        return where
