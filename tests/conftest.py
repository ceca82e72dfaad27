"""Shared settings: hypothesis draws the same examples on every run."""

from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=40)
settings.load_profile("fixed")
