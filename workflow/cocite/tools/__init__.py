"""What people call before, during and after a run, and no rule does."""
