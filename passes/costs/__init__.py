"""What plans are weighed by: a library's model of costs (``model``), or a clock (``layout/measure``)."""
