"""What a compilation decided and made: the recorder between the phases, the report, and its views."""
