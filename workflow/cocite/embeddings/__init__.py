"""Graph embeddings: edges split into training and hold-out, trained on by an engine, and measured."""
