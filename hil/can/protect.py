"""Protection of a message as a CAN database or a rig file gives it -> fields of its MessageSpec."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError, closest
from torqueloop.cython_kernels.can.bits import Field, Split, all_bits, bits
from torqueloop.cython_kernels.can.protection import E2E_PROFILES, NONE


@dataclass(frozen=True)
class E2ESettings:
    """Protection of one message, for databases without E2E attributes. The fields of [bus.NAME.e2e] in a rig file.

    crc_signal and counter_signal name one signal, or the parts of a split one: "LOW HIGH", the lowest bits first.
    """

    profile: str = "NONE"
    data_id: int | None = None
    data_ids: tuple[int, ...] = ()
    crc_signal: str | None = None
    counter_signal: str | None = None
    counter_max: int | None = None
    max_delta: int = 2
    counter_min: int = 0
    counter_skips: tuple[int, ...] = ()
    offset: int = 0
    init: int | None = None
    xorout: int | None = None

    @property
    def crc_signals(self) -> list[str]:
        """Signals that make the checksum together, its lowest bits first."""
        return (self.crc_signal or "").replace(",", " ").split()

    @property
    def counter_signals(self) -> list[str]:
        """Signals that make the alive counter together, its lowest bits first."""
        return (self.counter_signal or "").replace(",", " ").split()


def settings_of(message: Any, path: Path) -> E2ESettings:
    """Protection as the message's attributes in the database say."""
    given = message.dbc.attributes if message.dbc is not None else {}

    def value(name: str, default: Any) -> Any:
        return given[name].value if name in given else default

    def numbers(name: str, base: int, allowed: str) -> tuple[int, ...]:
        text = str(value(name, ""))
        try:
            return tuple(int(word, base) for word in text.replace(",", " ").split())
        except ValueError as error:
            problem = f"message {message.name}: {name} '{text}'"
            raise ConfigError(problem, file=str(path), allowed=allowed) from error

    return E2ESettings(
        profile=str(value("E2EProfile", "NONE")) or "NONE",
        data_id=value("E2EDataID", None),
        data_ids=numbers("E2EDataIDList", 16, "16 hexadecimal bytes"),
        crc_signal=value("E2ECrcSignal", None) or None,
        counter_signal=value("E2ECounterSignal", None) or None,
        counter_max=value("E2ECounterMax", None),
        max_delta=int(value("E2EMaxDelta", 2)),
        counter_min=int(value("E2ECounterMin", 0)),
        counter_skips=numbers("E2ECounterSkips", 10, "numbers"),
        offset=int(value("E2EOffset", 0)),
        init=value("E2EInit", None),
        xorout=value("E2EXorOut", None),
    )


def owned_signals(message: Any, settings: E2ESettings) -> set[str]:
    """Names of the signals that the codec owns: checksum and counter, and all that lies in the header of a profile."""
    owned = {*settings.crc_signals, *settings.counter_signals}
    profile = E2E_PROFILES.get(settings.profile)
    if profile is not None and profile.header is not None:
        header = set(range(8 * settings.offset, 8 * (settings.offset + profile.header.size)))
        owned |= {s.name for s in message.signals if set(bits(_field(s))) <= header}
    if profile is not None and profile.id_nibble:
        owned |= {s.name for s in message.signals if set(bits(_field(s))) <= set(range(12, 16))}
    return owned


#: attribute of a database -> key of [bus.NAME.e2e.MESSAGE]
_KEYS = {"E2EProfile": "profile", "E2EDataID": "data_id", "E2ECrcSignal": "crc_signal",
         "E2ECounterSignal": "counter_signal"}  # fmt: skip


def protection(message: Any, settings: E2ESettings, path: Path, *, own: bool = False) -> dict[str, Any]:
    """E2E fields of the MessageSpec; ConfigError on what does not fit. own: the settings are the rig file's."""
    where = f"message {message.name}"
    signals: Mapping[str, Any] = {s.name: s for s in message.signals}

    def error(problem: str, attribute: str = "", value: Any = None, **more: Any) -> ConfigError:
        if own:
            key = f"e2e.{message.name}" + (f".{_KEYS[attribute]}" if attribute else "")
            return ConfigError(f"{where}: {{key}}: {problem}", key=key, value=value, **more)
        head = f"{where}: {{key}}" if attribute else where
        return ConfigError(f"{head}: {problem}", file=str(path), key=f"attribute {attribute}", value=value, **more)

    if settings.profile not in E2E_PROFILES:
        near = closest(settings.profile, E2E_PROFILES)
        hint = f"did you mean '{near}'?" if near else None
        raise error("there is no rule {value}", "E2EProfile", settings.profile, allowed=", ".join(E2E_PROFILES),
                    hint=hint)  # fmt: skip
    profile = E2E_PROFILES[settings.profile]
    named = (("E2ECrcSignal", settings.crc_signals), ("E2ECounterSignal", settings.counter_signals))
    for attribute, name in ((attribute, name) for attribute, names in named for name in names):
        if name not in signals:
            near = closest(name, signals)
            raise error("{value} is no signal of the message", attribute, name, allowed=", ".join(signals),
                        hint=f"did you mean '{near}'?" if near else None)  # fmt: skip
        if signals[name].multiplexer_ids is not None:
            raise error(f"{name} is checksum or alive counter and multiplexed, which is not supported", attribute)
    checksum: Split | None = None
    if profile.kind != NONE and profile.header is None:
        fitting = ", ".join(s.name for s in message.signals if _fits([s], profile.widths)) or "it has none that fits"
        crc = [signals[name] for name in settings.crc_signals]
        if not crc:
            raise error(f"{settings.profile} needs the signal that is the checksum", "E2ECrcSignal", allowed=fitting)
        checksum = _fields(crc)
        if not _fits(crc, profile.widths):
            what = f"checksum {settings.crc_signal} (start bit {crc[0].start}, {sum(s.length for s in crc)} bit)"
            must = "fill one byte" if profile.widths == (8,) else f"have {' or '.join(map(str, profile.widths))} bit"
            raise error(f"{what} of {settings.profile} must {must}", "E2ECrcSignal", allowed=fitting)
    if profile.header is not None and not 0 <= settings.offset <= message.length - profile.header.size:
        raise error(f"{settings.profile} has a header of {profile.header.size} bytes from offset {settings.offset} on, "
                    f"the message {message.length} bytes")  # fmt: skip
    if profile.id_bits and settings.data_id is None:
        raise error(f"{settings.profile} needs a data id of {profile.id_bits} bit", "E2EDataID")
    return {
        "e2e": settings.profile,
        "data_id": settings.data_id or 0,
        "data_ids": settings.data_ids,
        "crc_bits": checksum,
        "counter": _fields([signals[name] for name in settings.counter_signals]),
        "counter_max": settings.counter_max,
        "counter_min": settings.counter_min,
        "counter_skips": settings.counter_skips,
        "max_delta": settings.max_delta,
        "e2e_offset": settings.offset,
        "e2e_init": settings.init,
        "e2e_xorout": settings.xorout,
    }


def _fits(parts: list[Any], widths: tuple[int, ...]) -> bool:
    """A checksum of one of these widths; one of 8 bits stands in one byte."""
    length = sum(s.length for s in parts)
    return length in widths and (length != 8 or len({k // 8 for k in all_bits(_fields(parts))}) == 1)


def _fields(parts: list[Any]) -> Split | None:
    """The field that signals make together; None of no signal."""
    return tuple(_field(s) for s in parts) if len(parts) > 1 else _field(parts[0]) if parts else None


def _field(signal: Any) -> Field:
    return (signal.start, signal.length, signal.byte_order == "big_endian")
