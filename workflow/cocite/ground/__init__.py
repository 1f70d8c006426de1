"""What every stage stands on and may import, beside the tables."""
