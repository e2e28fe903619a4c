"""Studies: one scenario or rig run many times with other values, on many processors, with a table of what came out."""
