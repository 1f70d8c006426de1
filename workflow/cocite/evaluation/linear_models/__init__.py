"""Linear support vector machines on fixed vectors: what is fitted, and the two solvers."""
