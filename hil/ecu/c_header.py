"""The C headers of this package as ctypes has them: structs, functions and version are read from the header itself."""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from torqueloop.hil.link.endpoints import PeerError

#: folder of the headers
INCLUDE = Path(__file__).resolve().parent / "include"
#: so many bytes a library may use for the reason why it cannot go on
ERROR_BYTES = 512
#: a function that takes a line of a log
LOG = ctypes.CFUNCTYPE(None, ctypes.c_char_p)
_TYPES: dict[str, Any] = {"double": ctypes.c_double, "char": ctypes.c_char, "void": None} | {
    f"{sign}int{bits}_t": getattr(ctypes, f"c_{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)
}
_STRUCT = re.compile(r"typedef struct (\w+) \{(.*?)\}", re.DOTALL)
_FUNCTION = re.compile(r"^TL_\w*EXPORT (.*?)(\w+)\(([^)]*)\);", re.MULTILINE)
#: qualifiers and type, stars, name, number of elements; or a pointer to a function that takes a line
_DECLARED = re.compile(
    r"(?P<log>void \(\*\w+\)\(.*?\))|(?P<type>[\w ]+?) ?(?P<stars>\*[*\w ]*?)?(?P<name>\w+)(?:\[(\d+)\])?$"
)


class Header:
    """One header."""

    def __init__(self, name: str) -> None:
        self.name: str = name
        text = re.sub(r"/\*.*?\*/", "", (INCLUDE / name).read_text(encoding="utf-8"), flags=re.DOTALL)
        found = re.search(r"#define \w+_ABI (\d+)u", text)
        assert found is not None
        #: version of the interface
        self.abi: int = int(found[1])
        #: C name -> its image
        self.structs: dict[str, Any] = {}
        for struct, body in _STRUCT.findall(text):
            self.structs[struct] = type(
                struct, (ctypes.Structure,), {"_fields_": list(self._declared(body.split(";")))}
            )
        #: name -> (type of the result, types of the arguments)
        self._functions = {
            function: (self._type(result, ""), [kind for _, kind in self._declared(arguments.split(","))])
            for result, function, arguments in _FUNCTION.findall(text)
        }

    def _declared(self, declarations: Sequence[str]) -> Iterator[tuple[str, Any]]:
        """Names and types of members or arguments."""
        for one in filter(None, (" ".join(d.split()) for d in declarations)):
            if one == "void":
                continue
            match = _DECLARED.match(one)
            assert match is not None, one
            if match["log"]:
                yield one.partition("*")[2].partition(")")[0], LOG
                continue
            kind = self._type(match["type"], match["stars"] or "")
            yield match["name"], kind if match[5] is None else kind * int(match[5])

    def _type(self, words: str, stars: str) -> Any:
        stars += "*" * words.count("*")
        name = re.sub(r"\b(const|volatile)\b|\*", "", words).strip()
        kind = self.structs.get(name) or _TYPES.get(name)
        depth = stars.count("*")
        if depth and name in ("char", "void") and (name == "void" or "const" in words):
            kind, depth = ctypes.c_void_p if name == "void" else ctypes.c_char_p, depth - 1
        for _ in range(depth):
            kind = ctypes.POINTER(kind)
        return kind

    def library(self, file: Path, optional: Sequence[str] = ()) -> ctypes.CDLL:
        """A shared library with the functions of this header, built for its version; PeerError. optional: functions
        that it may lack."""
        try:
            library = ctypes.CDLL(str(file.resolve()))
        except OSError as error:
            raise PeerError(f"{file.name} cannot be loaded: {error}") from None
        missing = [name for name in self._functions if name not in optional and not hasattr(library, name)]
        if missing:
            raise PeerError(f"{file.name} does not export {', '.join(missing)} (C linkage? {self.name})")
        for name in filter(lambda name: hasattr(library, name), self._functions):
            function = getattr(library, name)
            function.restype, function.argtypes = self._functions[name]
        found = getattr(library, next(name for name in self._functions if name.endswith("_abi")))()
        if found != self.abi:
            raise PeerError(f"{file.name} was built for ABI version {found}; this program has {self.abi}")
        return library


def texts(words: Sequence[str]) -> Any:
    """An array of texts; at least one element, as C wants it."""
    return (ctypes.c_char_p * max(1, len(words)))(*(word.encode() for word in words))


def write_log(text: bytes) -> None:
    """A line of a library's log."""
    print(text.decode("utf-8", "replace"), file=sys.stderr, flush=True)


def said(error: Any) -> str:
    """What a library has written into the room for its reason."""
    return bytes(error.value).decode("utf-8", "replace") or "(it gave no reason)"
