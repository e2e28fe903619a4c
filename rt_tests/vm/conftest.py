"""Tests on a real CAN interface, run inside the virtual machine of scripts/vm.py; rt_tests/rt/test_vm.py tells how."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

#: runs of whole rigs beside programs of others: only where time counts instructions (rt_tests/vm/vm_inside.py says so)
collect_ignore = [] if os.environ.get("TORQUELOOP_IN_VM") else ["test_clients.py"]
