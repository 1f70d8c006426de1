"""Methods that lay papers out in two dimensions, a module with one class each."""
