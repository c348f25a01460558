"""Operators that pick parts of tensors, or write them: by sizes, by order, by indices."""
