"""Trees of bodies from a file: run offline, or as a participant of a rig in lockstep."""
