"""Checksums of messages in the tick: nothing of it is seen from Python (protection.py has the rules)."""
