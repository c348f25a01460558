"""Networks of timm, transformers and PyTorch itself, compiled and compared."""
