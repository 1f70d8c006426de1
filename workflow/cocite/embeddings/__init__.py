"""Graph embeddings: edges split into training and hold-out, trained on by an engine, and measured."""

import warnings

# PyTorch-BigGraph 1.0.0 uses what newer versions of its dependencies deprecate. Each worker would say so: it imports
# the command line before anything else, so it comes by here and not yet by the engine's own package.
warnings.filterwarnings("ignore", category=UserWarning, module=r"torchbiggraph\b")
