r"""
Many runs at once
=================

*Your loss is your own, and the radius should be chosen by cross-validation. Do you have to write the loops?*

No: ``fw.sweep`` solves every radius on every fold, with any loss that JAX can differentiate. Here a forecast of the 90 %
quantile, the progression of diabetes that one patient in ten exceeds, by the pinball loss
:math:`\max(0.9\,e, -0.1\,e)` of the error e, its corner slightly rounded.
"""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import onesfw as fw
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

plt.style.use("onesfw.pictures")
X, y = load_diabetes(return_X_y=True)
X = StandardScaler().fit_transform(X)
unit = y.std()
rows = (X, (y - y.mean()) / unit)


def pinball(x, row):
    a, target = row
    error = target - a @ x["slopes"] - x["level"]
    return 0.9 * error + 0.05 * jax.nn.softplus(-error / 0.05)


objective = fw.FiniteSum(pinball, rows)
radii = np.array([0.1, 0.2, 0.4, 0.6, 0.8, 1.2, 2.0])
sets = [
    fw.sets.Product({"slopes": fw.sets.L1Ball(r, shape=X.shape[1]), "level": fw.sets.Box(-1.0, 3.0, shape=())})
    for r in radii
]
found = fw.sweep(objective, sets, steps=20_000, rows=fw.rows.folds(len(y), 10))
print(found)
found.plot(ax=plt.subplots()[1])
