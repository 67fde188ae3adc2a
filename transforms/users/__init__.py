"""A corpus by its users: what each contributes, and sums over all of them."""
