"""The samplers, a module with one class each: its fields say what a set of triplets may hold, `sample` makes it."""
