"""A small corpus cut from a big one, for trying a configuration."""
