"""Small mistakes put into the Python code, one at a time, and the nearest tests run on each."""
