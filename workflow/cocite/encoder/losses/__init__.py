"""The losses, a module with one class each: its fields are its settings, and it is called to compare a batch's
examples."""
