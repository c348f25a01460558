"""Networks exported from PyTorch by both of its exporters, compiled and compared."""
