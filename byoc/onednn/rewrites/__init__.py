"""Rewrites of region programs before their layouts are chosen: post-ops, folding, views."""
