"""Reference cases (`case.yaml` + `reference.csv`, schema case/1) as drivelines of our components.

    case = read_case("rt_tests/reference/msl/CoupledClutches")
    imported = import_case(case)             # imported.unsupported: what has no counterpart, with the reason
    imported.driveline, imported.inputs      # ready for Simulation

reading     case.yaml and reference.csv -> Case; every value with its unit in SI, errors name file, table and key
kinds       (domain, kind) -> component: one row of a table each, or one small function
blocks      signal blocks -> Signal: the graph of blocks is followed backwards from each input of a component
fixed_axis  multibody parts that turn about axes at rest -> inertias, gears and torques of one dimension
probes      sensors for motions that columns ask for and no component gives
importing   puts these together
"""

from __future__ import annotations

from torqueloop.core.reference.assembly import ImportedCase
from torqueloop.core.reference.importing import import_case
from torqueloop.core.reference.reading import MODE_QUANTITIES, Case, Column, read_case

__all__ = ["MODE_QUANTITIES", "Case", "Column", "ImportedCase", "import_case", "read_case"]
