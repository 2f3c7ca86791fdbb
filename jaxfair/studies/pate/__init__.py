"""PATE: who pays for the noise in the votes, figure by figure."""
