"""The stage corpus."""
