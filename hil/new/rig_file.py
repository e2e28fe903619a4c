"""A desk rig for a car with its generated TCU and database: through all gears up and down."""

from __future__ import annotations

from pathlib import Path
from string import Template

from torqueloop.hil.new.database import pressure_messages, pressure_signal


def pedal_for(mass_kg: float, torque_Nm: float) -> float:
    """Pedal at which such a car passes through all its gears in half a minute: 0.5 for 1780 kg and 440 Nm."""
    return min(max(0.5 * (mass_kg / torque_Nm) / (1780.0 / 440.0), 0.3), 0.8)


def rig_text(
    name: str, powertrain: str, tcu: str, database: str, vehicle: str, elements: list[str], pedal: float = 0.5
) -> str:
    """The rig file, commented."""
    messages = [f"TCU_Pressure_{k + 1}" for k in range(len(pressure_messages(elements)))]
    timeouts = ", ".join(f"{m} = 0.3" for m in messages)
    inputs = "\n".join(f'"{e}.p" = "{pressure_signal(elements, e)}"' for e in elements)
    template = Template((Path(__file__).parent / "templates" / "desk.toml").read_text(encoding="utf-8"))
    return template.substitute(
        name=name, powertrain=powertrain, tcu=tcu, database=database, vehicle=vehicle, timeouts=timeouts, inputs=inputs,
        lockup=pressure_signal(elements, "LU"), percent=f"{100 * pedal:.0f}", pedal=f"{pedal:.2f}",
    )  # fmt: skip
