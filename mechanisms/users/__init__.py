"""What a user contributes, and its clipping."""
