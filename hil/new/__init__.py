"""Starting files that a user changes: gearbox, car, control unit, CAN database, rig."""
