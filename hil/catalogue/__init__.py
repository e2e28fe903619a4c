"""What the configuration files may hold, made from their models: pages and JSON schemas."""
