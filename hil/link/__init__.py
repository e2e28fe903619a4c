"""The stamped exchange of messages between the rig and a vehicle model."""
