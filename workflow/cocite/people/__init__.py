"""What people call before, during and after a run, and no stage knows."""
