"""scikit-learn estimators: linear models under a norm constraint, matrix completion, selectors of columns and rows."""

from onesfw.sklearn.classifier import OneSFWClassifier
from onesfw.sklearn.completion_estimator import MatrixCompletion
from onesfw.sklearn.cross_validated import OneSFWClassifierCV, OneSFWRegressorCV
from onesfw.sklearn.regressor import OneSFWRegressor
from onesfw.sklearn.selector import RowSelector, SubmodularSelector
from onesfw.sklearn.stability_selector import StabilitySelector

__all__ = [
    "MatrixCompletion",
    "OneSFWClassifier",
    "OneSFWClassifierCV",
    "OneSFWRegressor",
    "OneSFWRegressorCV",
    "RowSelector",
    "StabilitySelector",
    "SubmodularSelector",
]
