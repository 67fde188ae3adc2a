"""The evaluation of a release: its studies, and a sweep of them."""
