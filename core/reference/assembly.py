"""What an import builds up: the driveline, its inputs, the names of the case in it, and what could not be mapped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.reference.reading import Case, in_si
from torqueloop.core.signals import Signal


class NotMapped(Exception):
    """Something of a case has no counterpart here; the text says what and why."""


#: stands for "the case must give it"
NEEDED: Any = object()


class Parameters:
    """Parameters (in SI) and start values of one component; remembers what was read, so that nothing is dropped."""

    #: Modelica parameters without effect on trajectories: connectors (seen from the connections), scaling, states
    HARMLESS = frozenset({
        "useSupport", "useSupportR", "useSupportT", "useHeatPort", "useAxisFlange", "stateSelect", "phi_nominal",
        "s_nominal", "w_small", "v_small", "K_locked", "animation", "checkTotalPower", "verboseRead", "tableOnFile",
    })  # fmt: skip

    def __init__(self, entry: Mapping[str, Any], start: Mapping[str, Any] | None = None) -> None:
        self.name: str = str(entry["name"])
        self.label: str = f"{entry['domain']}/{entry['kind']}"
        self.raw: dict[str, Any] = {str(name): in_si(v) for name, v in (entry.get("parameters") or {}).items()}
        self.derived: dict[str, Any] = {str(name): in_si(v) for name, v in (entry.get("derived") or {}).items()}
        self.unread: set[str] = set(self.raw) - self.HARMLESS
        #: quantity -> prescribed start value
        self.start_values: dict[str, Any] = dict(start or {})
        #: start values taken by the component itself
        self.start_taken: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self.raw

    def __call__(self, name: str, default: Any = NEEDED) -> Any:
        self.unread.discard(name)
        if name in self.raw:
            return self.raw[name]
        if default is NEEDED:
            raise NotMapped(f"{self.label} {self.name}: parameter {name} is missing and has no default")
        return default

    def start(self, quantity: str, default: Any) -> Any:
        """A start value that is a parameter of our component (temperatures)."""
        if quantity in self.start_values:
            self.start_taken.add(quantity)
            return self.start_values[quantity]
        return default


@dataclass(frozen=True)
class Quantity:
    """A quantity of the case as a product of outputs of the driveline (none: 1) and a factor; or a law of them."""

    outputs: tuple[str, ...]
    factor: float = 1.0
    #: of the outputs over time (samples, outputs), in place of their product
    law: Callable[[NDArray[np.float64]], NDArray[np.float64]] | None = None


@dataclass
class ImportedCase:
    """A case mapped onto a driveline. `driveline` is usable only when `unsupported` is empty."""

    case: Case
    driveline: Driveline
    #: model input name -> signal
    inputs: dict[str, Signal] = field(default_factory=dict)
    #: everything that has no counterpart here, with the reason
    unsupported: list[str] = field(default_factory=list)
    #: component name of the case -> name in the driveline
    names: dict[str, str] = field(default_factory=dict)
    #: connector of the case -> flange of the driveline, where it is not <name>.<connector>
    connectors: dict[str, str] = field(default_factory=dict)
    #: connectors of the case that are one, joined inside a component that has no other effect
    joined: list[tuple[str, str]] = field(default_factory=list)
    #: "component.quantity" or "component.quantity[i]" of the case, where it is not the output <name>.<quantity>
    quantities: dict[str, Quantity] = field(default_factory=dict)
    #: input connector of the case -> [(input of the driveline, factor)], where it is not <name>.<connector>
    ports: dict[str, list[tuple[str, float]]] = field(default_factory=dict)
    #: input connectors of the case whose signal is inverted (1/u)
    reciprocal: set[str] = field(default_factory=set)
    #: input connector of the case -> [(quantity, order)] that start at its value (derivative of that order), unless the
    #: case prescribes them
    start_ports: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    #: "block.y" -> signal, for the columns of signal blocks
    signals: dict[str, Signal] = field(default_factory=dict)

    def add(self, case_name: str, component: Component, suffix: str = "") -> str:
        """Add a component under the name of the case (made a word, with an optional suffix); its name."""
        name = plain(case_name) + suffix
        if name in self.driveline.components:
            number = 2
            while f"{name}_{number}" in self.driveline.components:
                number += 1
            name = f"{name}_{number}"
        self.driveline.add(name, component)
        self.names.setdefault(case_name, name)
        return name

    def refuse(self, what: str) -> None:
        """Note what could not be mapped, once."""
        if what not in self.unsupported:
            self.unsupported.append(what)

    def flange(self, path: str) -> str | None:
        """Flange of the driveline for a connector of the case; None: it only joins others."""
        if path in self.connectors:
            return self.connectors[path]
        if any(path in pair for pair in self.joined):
            return None
        owner, connector = self.case.owner(path)
        if owner not in self.names:
            raise NotMapped(f"connector {path}: {owner} is not a component with flanges")
        return f"{self.names[owner]}.{connector}"

    def quantity(self, component: str, quantity: str, index: int = 0) -> Quantity:
        """Outputs of the driveline for a quantity of the case."""
        key = f"{component}.{quantity}" + (f"[{index}]" if index else "")
        return self.quantities.get(key, Quantity((f"{self.names.get(component, '')}.{quantity}",)))

    def input_ports(self, path: str) -> list[tuple[str, float]]:
        """Inputs of the driveline that a signal connector of the case feeds; none if it is not one of a component."""
        if path in self.ports:
            return self.ports[path]
        owner, connector = self.case.owner(path)
        return [(f"{self.names[owner]}.{connector}", 1.0)] if owner in self.names else []


def plain(name: str) -> str:
    """Names of a case may hold dots and brackets; ours are words."""
    return "".join(c if c.isalnum() or c == "_" else "_" for c in name).strip("_")
