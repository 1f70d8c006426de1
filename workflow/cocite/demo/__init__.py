"""The stage demo."""
