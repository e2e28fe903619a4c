"""What a run leaves on disk: its folder, crash-safe records, logs, and their readers."""
