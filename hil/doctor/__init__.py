"""Is this machine fit for real time? Looks at rights, kernel, CPUs, clock, bus; then measures what a loop would see."""

from torqueloop.hil.doctor.examine import calibrated, examine, exit_status
from torqueloop.hil.doctor.finding import Finding, Level
from torqueloop.hil.doctor.host_files import SET_UP

__all__ = ["SET_UP", "Finding", "Level", "calibrated", "examine", "exit_status"]
