"""Elements picked, put and added by indices, by their order, and by where they belong."""
