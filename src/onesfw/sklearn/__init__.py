"""scikit-learn estimators: linear models under a hard norm constraint, one row a step."""

from onesfw.sklearn.classifier import OneSFWClassifier
from onesfw.sklearn.regressor import OneSFWRegressor

__all__ = ["OneSFWClassifier", "OneSFWRegressor"]
