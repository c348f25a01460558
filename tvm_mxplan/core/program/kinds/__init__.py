"""Kinds of steps by family; ``attributes`` has the others and the table of all."""
