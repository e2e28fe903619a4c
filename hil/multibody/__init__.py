"""Trees of bodies from a file: run offline, or as a peer of a rig in lockstep."""
