"""One release from spec to published files."""
