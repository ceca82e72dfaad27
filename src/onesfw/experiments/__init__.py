"""Measured comparisons: methods on problems at equal budgets, slopes with intervals, tables and the page."""
