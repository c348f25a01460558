"""Libraries as files: linking, digests, weights, and files that appear whole."""
