"""Studies of chapter 5: who pays for a smaller network, why, and what helps."""
