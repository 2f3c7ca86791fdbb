"""What fairness costs in robustness: chapter 6 of the thesis."""
