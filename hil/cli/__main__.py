"""`python -m torqueloop.hil.cli`: as the command, without one being installed."""

from torqueloop.hil.cli import main

main()
