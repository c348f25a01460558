"""TVM's command line, brought back on Relax: ``tvmc compile``, ``tvmc run``, ``tvmc show``.

It only parses and prints; what works is in :mod:`tvm_mxplan`.
"""
