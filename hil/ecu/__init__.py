"""The soft transmission control unit: what it decides, how it shifts, its place on the bus."""
