"""The report of a run: its numbers, figures and pages, read from the run directory alone."""
