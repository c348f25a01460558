"""Sources of the costs of plans: a library's model of costs (``model``), or a clock (``layout/measure``)."""
