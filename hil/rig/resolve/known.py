"""How the messages of a rig's bus are known: from the interface file of the bus, or of the soft TCU on it."""

from __future__ import annotations

from pathlib import Path

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.can.known import Known
from torqueloop.hil.common.locate import find
from torqueloop.hil.ecu.interface_tables import load_interface
from torqueloop.hil.rig.schema.rig_file import RigConfig


def known_of(path: Path, config: RigConfig, bus: str) -> dict[str, Known]:
    """Message -> how it is known; empty where no interface file belongs to the bus. ConfigError for a file that is not
    there or is wrong."""
    name, table = config.bus[bus].known, f"bus.{bus}"
    if name is None:
        # a soft TCU speaks the interface on its second bus (hil/ecu/soft_tcu.py)
        units = (u for n, u in config.ecu.items() if config.buses_of(n)[1:2] == [bus])
        name = next((str(u.options["interface"]) for u in units if u.options.get("interface")), None)
    if name is None:
        return {}
    try:
        file = find(path, name, "interfaces")
    except ConfigError as error:
        if config.bus[bus].known is None:
            return {}  # the control unit names it where it is read
        raise error.located(file=str(path), table=table, key="known") from None
    return load_interface(file).known
