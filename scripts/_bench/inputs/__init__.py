"""Networks that benchmarks measure beside those of the zoo."""
