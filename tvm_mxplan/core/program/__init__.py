"""The region program: the typed value, its rules, text, bytes, and what rewrites it without a library."""
