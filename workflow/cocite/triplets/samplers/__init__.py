"""The samplers, as classes: the fields are the settings of a set of triplets, `sample` makes it."""
