"""A page that shows a running rig: a process of its own between the rig and a browser (docs/watch.md)."""
