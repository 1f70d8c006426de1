"""The stage encoder: text encoders, built or fetched, fine-tuned on examples, and the embeddings of documents.

It imports torch, transformers and tokenizers but neither Polars, DuckDB nor FAISS, so that it can be carried alone to a
machine with a GPU. To follow a training from the command to the optimiser's step, read launching, training,
schedule, batches, objective and model, in this order; examples and tokens say what it learns from.
"""
