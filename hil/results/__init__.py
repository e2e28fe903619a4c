"""What a run tells about itself: one tree of frozen dataclasses, its JSON, and the schema of that."""
