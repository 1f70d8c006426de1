"""The samplers, as classes: the fields say what a set of triplets may hold, `sample` makes it."""
