"""Protection of a message as a CAN database or a rig file gives it -> fields of its MessageSpec."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torqueloop.core.describe.errors import ConfigError, closest
from torqueloop.cython_kernels.can.bits import Field, bits
from torqueloop.cython_kernels.can.protection import E2E_PROFILES, NONE


@dataclass(frozen=True)
class E2ESettings:
    """Protection of one message, for databases without E2E attributes. The fields of [bus.NAME.e2e] in a rig file."""

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
    owned = {name for name in (settings.crc_signal, settings.counter_signal) if name is not None}
    profile = E2E_PROFILES.get(settings.profile)
    if profile is not None and profile.header is not None:
        header = set(range(8 * settings.offset, 8 * (settings.offset + profile.header.size)))
        owned |= {s.name for s in message.signals if set(bits(_field(s))) <= header}
    if profile is not None and profile.id_nibble:
        owned |= {s.name for s in message.signals if set(bits(_field(s))) <= set(range(12, 16))}
    return owned


def protection(message: Any, settings: E2ESettings, path: Path) -> dict[str, Any]:
    """E2E fields of the MessageSpec; ConfigError on what does not fit."""
    where = f"message {message.name}"
    signals: Mapping[str, Any] = {s.name: s for s in message.signals}

    def error(problem: str, **place: Any) -> ConfigError:
        return ConfigError(f"{where}: {problem}", file=str(path), **place)

    if settings.profile not in E2E_PROFILES:
        near = closest(settings.profile, E2E_PROFILES)
        hint = f"did you mean '{near}'?" if near else None
        raise error("attribute E2EProfile", value=settings.profile, allowed=", ".join(E2E_PROFILES), hint=hint)
    profile = E2E_PROFILES[settings.profile]
    for attribute, name in (("E2ECrcSignal", settings.crc_signal), ("E2ECounterSignal", settings.counter_signal)):
        if name is not None and name not in signals:
            near = closest(name, signals)
            raise error(f"attribute {attribute} names '{name}', which is no signal of the message",
                        hint=f"did you mean '{near}'?" if near else None)  # fmt: skip
        if name is not None and signals[name].multiplexer_ids is not None:
            raise error(f"{name} is checksum or alive counter and multiplexed, which is not supported")
    checksum: Field | None = None
    if profile.kind != NONE and profile.header is None:
        if settings.crc_signal is None:
            raise error(f"E2E profile {settings.profile} needs attribute E2ECrcSignal")
        crc = signals[settings.crc_signal]
        checksum = _field(crc)
        if crc.length not in profile.widths or (crc.length == 8 and len({k // 8 for k in bits(checksum)}) != 1):
            what = f"checksum {crc.name} (start bit {crc.start}, {crc.length} bit)"
            allowed = " or ".join(map(str, profile.widths))
            raise error(f"{what} must fill one byte" if profile.widths == (8,) else f"{what} must have {allowed} bit")
    if profile.id_bits and settings.data_id is None:
        raise error(f"E2E profile {settings.profile} needs attribute E2EDataID")
    counter = signals[settings.counter_signal] if settings.counter_signal else None
    return {
        "e2e": settings.profile,
        "data_id": settings.data_id or 0,
        "data_ids": settings.data_ids,
        "crc_bits": checksum,
        "counter": None if counter is None else _field(counter),
        "counter_max": settings.counter_max,
        "counter_min": settings.counter_min,
        "counter_skips": settings.counter_skips,
        "max_delta": settings.max_delta,
        "e2e_offset": settings.offset,
        "e2e_init": settings.init,
        "e2e_xorout": settings.xorout,
    }


def _field(signal: Any) -> Field:
    return (signal.start, signal.length, signal.byte_order == "big_endian")
