"""Products of matrices by the runtime's kernels, beside what else could run them."""
