"""The search for settings: spaces, the study directory, and the trials."""
