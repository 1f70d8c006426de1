"""The losses, a module each: `loss` compares the triplets of a batch, `SCHEMA` says what it can be told.

`loss` takes query, positive and negative embeddings (rows × dimension, one triplet a row), with the numbers of the
queries that tell which triplets share theirs, and the keys of `SCHEMA` by their names. It gives a scalar in the dtype
of its input. A training casts to float32 first, also under mixed precision, because exponentials of scaled
similarities lose too much in bfloat16. `TOGETHER` says how many triplets of a query stay together in a batch, where
that is published.
"""
