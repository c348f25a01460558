"""Models of Relay, which TVM had up to 0.19, as text, JSON and parameter files."""
