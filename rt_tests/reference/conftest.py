"""The dense reference of the property tests (rt_tests/property) is at hand here, too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "property"))
