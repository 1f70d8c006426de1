"""The samplers, a module each: `sample` makes the triplets of some queries, by its `Settings`.

`SCHEMA` says what a set of triplets may hold in the configuration: what is sampled from (`embedding`, `graph`, `of`)
and the settings.
"""
