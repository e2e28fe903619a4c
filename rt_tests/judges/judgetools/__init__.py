"""Judges of buses that share no code with torqueloop: nothing in here imports it."""
