"""Steps to sweep, made of problems."""
