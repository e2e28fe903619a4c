"""The rig: processes, files, sockets and clocks around the tick; no physics."""
