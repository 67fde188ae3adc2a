"""A document in, a released row out: one privatizer for each kind of release."""
