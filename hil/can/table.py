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
    """[bus.NAME.e2e.MESSAGE]: protection of a message. This table replaces what the database says."""

    #: Rule of the checksum, one of those in docs/can_protection.md.
    profile: str = "NONE"
    #: Data id of AUTOSAR.
    data_id: Word | None = None
    #: AUTOSAR profile 2, VW MQB: 16 data ids, one for each value of the counter.
    data_ids: Annotated[list[Byte], Field(min_length=16, max_length=16)] | None = None
    #: Signal that is the checksum. Several signals are separated by spaces; the first has the lowest bits. A profile
    #: with a header needs none.
    crc_signal: str | None = None
    #: Signal that is the alive counter, or several signals as in `crc_signal`.
    counter_signal: str | None = None
    #: Lowest value of the counter.
    counter_min: Word = 0
    #: Highest value of the counter, after which the lowest follows. By default it is that of the profile.
    counter_max: Word | None = None
    #: Values that the counter leaves out.
    counter_skips: list[Word] = []
    #: Largest accepted step of the counter. With 1 no frame may be lost.
    max_delta: Annotated[int, Field(ge=1, le=255)] = 2
    #: First byte of the header of AUTOSAR profiles 4 to 7.
    offset: Annotated[int, Field(ge=0, le=61)] = 0
    #: Start value of the CRC or sum, which replaces that of the profile.
    init: Annotated[int, Field(ge=0)] | None = None
    #: Final XOR, which replaces that of the profile.
    xorout: Annotated[int, Field(ge=0)] | None = None

    @property
    def settings(self) -> E2ESettings:
        """As the codec takes it."""
        given = {name: getattr(self, name) for name in self.model_fields_set - {"source"}}
        lists = {name: tuple(given[name]) for name in ("data_ids", "counter_skips") if given.get(name)}
        return E2ESettings(**{**given, **lists})


class CanTable(ConfigTable):
    """Where the bus is and which messages are on it."""

    #: Interface of python-can. udp_multicast connects processes without hardware.
    interface: str = "udp_multicast"
    #: Multicast group, network device ("can0"), or channel of the adapter.
    channel: str = DEFAULT_GROUP
    #: UDP port (udp_multicast). By default it is 43113. If the rig itself starts all control units of the bus, it takes
    #: the first port from 43113 on that no other rig of this computer uses.
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    #: Address of the network interface (udp_multicast). Frames to the default address never leave this computer.
    local_address: str = LOOPBACK
    #: Number of routers that a packet may pass (udp_multicast). 0: this computer or network only.
    hop_limit: Annotated[int, Field(ge=0, le=255)] = 0
    #: Bit rate of an adapter [bit/s]. Without it, the adapter has the bit rate that the system has set. A SocketCAN
    #: interface has the latter in any case: `torqueloop setup-host` sets it to this one, and `doctor` compares them.
    bitrate: Annotated[int, Field(ge=10_000, le=1_000_000)] | None = None
    #: Further arguments of can.Bus for adapters.
    options: dict[str, str | int | float | bool] = {}
    #: CAN database, relative to the file.
    database: Annotated[str, InFile("can")]
    #: Message -> its protection, if the database does not give it or if it differs.
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
