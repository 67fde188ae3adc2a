"""The contributions of users, and their clipping."""
