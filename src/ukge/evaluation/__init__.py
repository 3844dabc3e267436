"""Pure metrics and the protocols that use them. They know predictions, not models."""
