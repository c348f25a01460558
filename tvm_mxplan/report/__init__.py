"""The record of a compilation: the recorder between the phases, the report, and its views."""
