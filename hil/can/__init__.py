"""CAN between rig and control unit: database, codec tables, buses and the gateway to the tick."""
