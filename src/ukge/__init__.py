"""ukge: knowledge graphs whose facts carry a confidence."""
