"""The commands, and in wings below them the code that commands share: see CONTRIBUTING.md."""
