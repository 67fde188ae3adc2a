"""The commands, and below them what commands share, in wings: see CONTRIBUTING.md."""
