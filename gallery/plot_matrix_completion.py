"""
Filling in a matrix
===================

*Three fifths of the pixels of a photograph are lost. How much of it does a matrix of low rank bring back, and how is its
size chosen?*

``fw.lowrank.complete`` learns from the known entries alone. It holds out a tenth of them to choose the radius of a
trace-norm ball, and certifies the result by a gap.
"""

import matplotlib.pyplot as plt
import numpy as np
import onesfw as fw
from sklearn.datasets import load_sample_image

plt.style.use("onesfw.pictures")
photograph = load_sample_image("china.jpg").mean(2)[::2, ::2] / 255
rng = np.random.default_rng(0)
known = rng.random(photograph.shape) < 0.4
i, j = np.nonzero(known)
model = fw.lowrank.complete(i, j, photograph[i, j], photograph.shape)
print(model)

# %%
# The answer
# ----------

filled = model.predict(*np.indices(photograph.shape).reshape(2, -1)).reshape(photograph.shape)
figure, panels = plt.subplots(3, 1, figsize=(4.2, 8.4))
for axes, (title, image) in zip(
    panels,
    {
        "two fifths of the pixels": np.where(known, photograph, 1.0),
        f"filled in, rank {model.rank}": filled,
        "the photograph": photograph,
    }.items(),
    strict=True,
):
    axes.imshow(image, cmap="gray", vmin=0, vmax=1)
    axes.set_title(title)
    axes.set_axis_off()

figure, axes = plt.subplots()
model.path.plot(ax=axes)
hidden = ~known
for name, guess in (("low rank", filled), ("mean of the known", np.full_like(filled, photograph[known].mean()))):
    errors = (guess - photograph)[hidden]
    print(f"{name}: root mean squared error of the lost pixels {np.sqrt(np.mean(errors**2)):.4f}")
