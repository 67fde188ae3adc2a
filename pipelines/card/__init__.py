"""The card of a release: its content, its form for people, and its verification."""
