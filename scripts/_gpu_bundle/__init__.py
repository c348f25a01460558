"""A bundle for a GPU machine without network, in parts of a bounded size.

main      the command line: pack here, unpack there
contents  the files that a bundle holds: wheels, tests, scripts, models
closure   the distributions that an installation of ours needs
parts     a stream of bytes as numbered files, and their digests
unpack    the other end: one file that needs Python's standard library alone, and travels with the parts
"""
