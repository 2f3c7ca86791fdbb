"""SF-PATE: fair models whose group attributes are private, and their rivals."""
