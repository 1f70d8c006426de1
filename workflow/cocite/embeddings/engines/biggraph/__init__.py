"""PyTorch-BigGraph (Lerer et al., 2019): its files and configuration, and a training that can be repeated."""
