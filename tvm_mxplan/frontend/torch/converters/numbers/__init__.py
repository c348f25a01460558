"""Functions of one number, bits of integers, averages and variances."""
