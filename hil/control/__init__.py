"""Control channel: read and write a running rig by name, over ZeroMQ."""
