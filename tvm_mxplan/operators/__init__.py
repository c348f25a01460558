"""Operators of Relax that TVM lacks, registered where they are first needed."""
