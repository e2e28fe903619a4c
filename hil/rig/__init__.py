"""A run of the rig: its file checked and built, its clocks, peers and safe state, from start to replay."""
