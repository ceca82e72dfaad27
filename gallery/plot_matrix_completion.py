"""
Filling in a matrix
===================

*Three fifths of the pixels of a photograph are lost. How much of it does a matrix of low rank bring back, and who
chooses the rank?*

``fw.lowrank.complete`` learns from the known entries alone. It holds out a tenth of them to choose the radius of a
trace-norm ball, which decides the rank, and limits the rank where that predicts better, as it does here.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

import onesfw as fw

plt.style.use("onesfw.pictures")
photograph = load_sample_image("china.jpg").mean(2)[::2, ::2] / 255  # 0 is black, 1 white
rng = np.random.default_rng(0)
known = rng.random(photograph.shape) < 0.4
rows, columns = np.nonzero(known)
model = fw.lowrank.complete(rows, columns, photograph[known], photograph.shape)
print(model)

# %%
# The answer
# ----------
# Whatever repeats along rows and columns comes back, such as roofs and pillars; the leaves of the trees do not.

every_row, every_column = (part.ravel() for part in np.indices(photograph.shape))
filled = model.predict(every_row, every_column).reshape(photograph.shape)
pictures = {
    "two fifths of the pixels": np.where(known, photograph, 1.0),
    f"filled in by rank {model.rank}": np.where(known, photograph, filled),
    "the photograph": photograph,
}
figure, panels = plt.subplots(3, 1, figsize=(4.2, 8.8))
for axes, (title, image) in zip(panels, pictures.items(), strict=True):
    axes.imshow(image, cmap="gray", vmin=0, vmax=1)
    axes.set_title(title)
    axes.set_axis_off()

# %%
# The path of radii: a larger ball allows a larger rank, up to where more of it would follow the noise of the entries
# that are known. From there on the rank is limited, and the gap counts what any rank could gain: it bounds nothing.

figure, axes = plt.subplots()
model.path.plot(ax=axes)

# %%
# In figures, on the lost pixels only, against means of the known pixels of each row and column:

lost = ~known
by_row = (photograph * known).sum(1, keepdims=True) / known.sum(1, keepdims=True)
by_column = (photograph * known).sum(0, keepdims=True) / known.sum(0, keepdims=True)
errors = {}
for name, guess in (("low rank", filled), ("means", by_row + by_column - photograph[known].mean())):
    squares = (guess - photograph)[lost] ** 2
    errors[name] = np.sqrt(squares.mean())
    stderr = squares.std() / np.sqrt(squares.size) / (2 * errors[name])
    print(f"{name}: root mean squared error {errors[name]:.4f} ± {stderr:.4f}, where black to white is 1")
assert errors["low rank"] < 0.75 * errors["means"]
