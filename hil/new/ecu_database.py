"""Which CAN database and which node of it `torqueloop new ecu` writes code for."""

from __future__ import annotations

from pathlib import Path

from torqueloop.core.describe.errors import ConfigError, closest
from torqueloop.hil.can.load import read_database
from torqueloop.hil.common.locate import find, installed, locate
from torqueloop.hil.ecu.interface_tables import load_interface


def database_of(name: str, node: str | None) -> tuple[Path, str]:
    """Database and node: a CAN database with its node, or an interface file, which names both. ConfigError on a node
    that the database does not have."""
    path = locate(name, "interfaces" if name in installed("interfaces") else "can")
    if path.suffix == ".toml":
        interface = load_interface(path)
        node = node or interface.node
        if interface.database is None:
            raise ConfigError("the interface names no database", file=str(path), key="database")
        path = find(path, interface.database, "can")
    nodes = [str(n.name) for n in read_database(path).nodes]
    if node is None or node not in nodes:
        near = closest(node, nodes) if node else None
        hint = f"did you mean '{near}'?" if near else None
        raise ConfigError(
            "{key} = {value}", file=str(path), key="node", value=node, allowed=", ".join(nodes), hint=hint
        )
    return path, node
