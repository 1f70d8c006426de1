"""The stage encoder: text encoders, built or fetched, fine-tuned on triplets, and the embeddings of documents.

It imports torch, transformers and tokenizers but neither Polars, DuckDB nor FAISS, so that it can be carried alone to a
machine with a GPU. To follow a training from the command to the optimiser's step, read commands, training, schedule,
batches, objective, tokens and model, in this order.
"""
