"""Kernels held against an independent implementation before a plan uses them; see ``verifier``."""
