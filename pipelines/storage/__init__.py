"""Files wherever they are, and how what is made appears at its output, whole or not at all."""
