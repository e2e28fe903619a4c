"""A run of the rig: its file checked and built, its clocks, participants and safe state, from start to replay."""
