"""Makes the modules of this folder importable from tests in the folders below."""
