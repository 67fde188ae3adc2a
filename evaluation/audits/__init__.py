"""What a mechanism gives away, computed or measured, against what it states."""
