"""The samplers, a module each: `Settings` says what it can be told, `sample` makes the triplets of some queries."""
