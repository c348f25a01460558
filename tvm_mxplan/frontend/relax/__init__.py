"""Relax modules and tensors from TVM's own files, and checks of them."""
