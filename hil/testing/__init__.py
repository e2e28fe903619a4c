"""Rigs under the hand of a test: pytest fixtures, and the rig they give."""
