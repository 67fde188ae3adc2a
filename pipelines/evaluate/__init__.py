"""The evaluation of a release: its studies, a sweep of them, and the report."""
