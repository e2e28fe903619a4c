"""What can be done to a rig that runs: names, transactions, parameters of components, checkpoints."""
