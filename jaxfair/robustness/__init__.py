"""What a small push does to predictions: thresholds, attacks, robust errors.

Never trains: adversaries are handed to `training.fair_robust`.
"""
