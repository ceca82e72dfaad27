"""scikit-learn estimators: linear models under a hard norm constraint, one row a step; and a feature selector."""

from onesfw.sklearn.classifier import OneSFWClassifier
from onesfw.sklearn.regressor import OneSFWRegressor
from onesfw.sklearn.selector import SubmodularSelector

__all__ = ["OneSFWClassifier", "OneSFWRegressor", "SubmodularSelector"]
