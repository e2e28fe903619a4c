"""I/O devices of a rig: C libraries behind torqueloop_io.h, and who writes their safe values when the rig has died."""
