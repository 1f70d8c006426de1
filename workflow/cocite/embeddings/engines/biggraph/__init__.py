"""PyTorch-BigGraph (Lerer et al., 2019): its files and configuration, and a training that can be repeated."""

import warnings

# PyTorch-BigGraph 1.0.0 uses what newer versions of its dependencies deprecate, and each worker would say so.
warnings.filterwarnings("ignore", category=UserWarning, module=r"torchbiggraph\b")
