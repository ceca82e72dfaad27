"""Measured comparisons: methods on problems at equal budgets, slopes with intervals, tables and the page."""

from onesfw.experiments.comparison import Comparison, compare
from onesfw.experiments.curves import Curve
from onesfw.experiments.evidence import rates
from onesfw.experiments.page import Report, write_page
from onesfw.experiments.paper_tables import Rates

__all__ = ["Comparison", "Curve", "Rates", "Report", "compare", "rates", "write_page"]
