"""A throw-away virtual machine with a PREEMPT_RT kernel and real SocketCAN, for tests and measurements."""
