"""The results of a run: one tree of frozen dataclasses, its JSON, and the schema of that."""
