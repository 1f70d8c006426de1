"""Graph embeddings: edges split into training and hold-out, trained on by an engine, and measured."""

import warnings

# PyTorch-BigGraph 1.0.0 uses what newer versions of its dependencies deprecate, and each worker would say so.
warnings.filterwarnings("ignore", category=UserWarning, module=r"torchbiggraph\b")
