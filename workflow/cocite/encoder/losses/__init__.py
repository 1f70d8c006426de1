"""The losses, a module each: `loss` compares the examples of a batch, `SCHEMA` says which settings it has.

`loss` takes the vectors of the distinct documents of a batch (documents × dimension) and the batch, which says by
places among them what each query's positives and negatives are (see `batches.Batch`), and the keys of `SCHEMA` by their
names. It gives a scalar in the dtype of its input. A training gives float32, also under mixed precision, because
exponentials of scaled similarities lose too much in bfloat16. `TOGETHER` says how many examples of a query stay
together in a batch, where that is published.
"""
