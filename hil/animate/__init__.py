"""A run as a turning picture: one HTML file with the gearbox in three dimensions beside its plots."""
