"""Tests inside the virtual machine of scripts/vm.py; elsewhere there is no vcan0 and nothing here is collected."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

#: set by scripts/vm_inside.py; on the host rt_tests/rt/test_vm.py says how these tests went, or why they did not run
collect_ignore_glob = [] if os.environ.get("TORQUELOOP_IN_VM") else ["test_*.py"]
