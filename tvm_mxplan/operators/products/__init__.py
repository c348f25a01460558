"""Products of matrices that Relax has no operator for."""
