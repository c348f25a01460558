"""The inputs that a compilation depends on, as digests and facts: the model and its surroundings."""
