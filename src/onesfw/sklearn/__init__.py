"""scikit-learn estimators: linear models under a hard norm constraint; selectors of columns and of rows."""

from onesfw.sklearn.classifier import OneSFWClassifier
from onesfw.sklearn.regressor import OneSFWRegressor
from onesfw.sklearn.selector import RowSelector, SubmodularSelector

__all__ = ["OneSFWClassifier", "OneSFWRegressor", "RowSelector", "SubmodularSelector"]
