"""Monitors: what every drive is held to by the files of gearbox, car and rig alone."""
