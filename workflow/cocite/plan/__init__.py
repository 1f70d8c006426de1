"""From a configuration to files, settings and resources: what the rules ask."""
