"""Real-time set-up of process and thread, and what the machine offers for it."""
