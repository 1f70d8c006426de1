"""The stage baselines: the systems that models are compared with, trained on the corpus if necessary, and their
vectors."""
