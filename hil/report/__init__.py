"""hil/report."""
