"""Where a CAN bus is, which messages are on it, how it is opened: the part of [bus.NAME] that is no matter of ticks."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from torqueloop.hil.can.bus import CanBusConfig
from torqueloop.hil.can.multicast import DEFAULT_GROUP, DEFAULT_PORT, LOOPBACK
from torqueloop.hil.can.protect import E2ESettings
from torqueloop.hil.common.config_file import BadValue, ConfigTable, InFile

Word = Annotated[int, Field(ge=0, le=0xFFFFFFFF)]
Byte = Annotated[int, Field(ge=0, le=0xFF)]


class ProtectionTable(ConfigTable):
    """[bus.NAME.e2e.MESSAGE]: protection of a message, instead of what the database says."""

    #: rule of the checksum, one of E2E_PROFILES (docs/can_protection.md)
    profile: str = "NONE"
    #: AUTOSAR data id
    data_id: Word | None = None
    #: AUTOSAR profile 2, VW MQB: 16 data ids, one for each value of the counter
    data_ids: Annotated[list[Byte], Field(min_length=16, max_length=16)] | None = None
    #: signal that is the checksum; the parts of a split one with spaces between, the lowest bits first; profiles with
    #: a header have theirs
    crc_signal: str | None = None
    #: signal that is the alive counter, or the parts of a split one
    counter_signal: str | None = None
    #: lowest value of the counter
    counter_min: Word = 0
    #: highest value, after which the lowest comes; default: that of the profile
    counter_max: Word | None = None
    #: values between that the counter leaves out
    counter_skips: list[Word] = []
    #: largest accepted step of the counter; 1: no frame may be lost
    max_delta: Annotated[int, Field(ge=1, le=255)] = 2
    #: first byte of the header of AUTOSAR profiles 4 to 7
    offset: Annotated[int, Field(ge=0, le=61)] = 0
    #: start value of CRC or sum instead of the profile's
    init: Annotated[int, Field(ge=0)] | None = None
    #: final XOR instead of the profile's
    xorout: Annotated[int, Field(ge=0)] | None = None

    @property
    def settings(self) -> E2ESettings:
        """As the codec takes it."""
        given = {name: getattr(self, name) for name in self.model_fields_set - {"source"}}
        lists = {name: tuple(given[name]) for name in ("data_ids", "counter_skips") if given.get(name)}
        return E2ESettings(**{**given, **lists})


class CanTable(ConfigTable):
    """Where the bus is and which messages are on it."""

    #: any interface of python-can; udp_multicast works between processes without hardware
    interface: str = "udp_multicast"
    #: multicast group, network device ("can0") or channel of the adapter
    channel: str = DEFAULT_GROUP
    #: UDP port (udp_multicast); default 43113, or the next one that no other rig of this computer has where the rig
    #: starts all control units of the bus itself
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    #: address of the network interface (udp_multicast); the default never leaves this computer
    local_address: str = LOOPBACK
    #: routers a packet may pass (udp_multicast); 0: this computer or network only
    hop_limit: Annotated[int, Field(ge=0, le=255)] = 0
    #: bit rate of an adapter; without it as the system has set it [bit/s]
    bitrate: Annotated[int, Field(ge=10_000, le=1_000_000)] | None = None
    #: more arguments of can.Bus for adapters
    options: dict[str, str | int | float | bool] = {}
    #: CAN database, relative to the file
    database: Annotated[str, InFile("can")]
    #: message -> its protection, where the database does not give it or another one is wanted
    e2e: dict[str, ProtectionTable] = {}

    @field_validator("local_address")
    @classmethod
    def _address(cls, value: str) -> str:
        parts = value.split(".")
        if len(parts) != 4 or not all(p.isdigit() and int(p) < 256 for p in parts):
            raise BadValue("{key} = {value}", value=value, allowed="an IPv4 address of this computer")
        return value

    def bus(self, fd: bool = False) -> CanBusConfig:
        """What `bus.open_bus` takes. fd: the database has CAN FD messages."""
        return CanBusConfig(
            interface=self.interface,
            channel=self.channel,
            port=DEFAULT_PORT if self.port is None else self.port,
            local_address=self.local_address,
            hop_limit=self.hop_limit,
            bitrate=self.bitrate,
            fd=fd,
            options=dict(self.options),
        )
