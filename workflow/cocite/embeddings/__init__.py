"""Graph embeddings: edges split into training and hold-out, trained on by an engine, and evaluated."""

import warnings

# PyTorch-BigGraph 1.0.0 uses deprecated features of its dependencies, and each worker would warn about them.
warnings.filterwarnings("ignore", category=UserWarning, module=r"torchbiggraph\b")
