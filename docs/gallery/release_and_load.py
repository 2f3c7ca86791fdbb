# %% [markdown]
# # Release a model, load it in another process
#
# A method turns people and a budget into a folder. The folder `release` holds the model, how new
# people are encoded, the guarantee and a model card, and nothing else is needed to predict.

# %%
import pathlib
import subprocess
import sys
import tempfile

import jax
import matplotlib.pyplot as plt
import numpy as np

from jaxfair import data, methods
from jaxfair.accounting import Budget

everyone = data.two_gaussians((1500, 1500), margins=1.5, key=jax.random.key(0))
split = data.prepare(everyone, (0.2, 0.6, 0.2), key=jax.random.key(1), scale="none")
people = methods.Population.prepared(split)
method = methods.get("output_perturbation")
plan = method.plan(method.settings(), people.sizes, Budget(epsilon=1.0, delta=1e-5))
print(plan.guarantee)

# %%
folder = pathlib.Path(tempfile.mkdtemp()) / "model"
method.release(plan, people, folder=folder)
print(sorted(path.name for path in (folder / "release").iterdir()))

# %% [markdown]
# Another process loads the folder and predicts; it has never seen the people.

# %%
test = split.parts[2]
np.save(folder / "new.npy", np.asarray(test.x))
code = """
import sys, numpy, jaxfair
model = jaxfair.load(sys.argv[1] + "/release")
numpy.save(sys.argv[1] + "/labels.npy", model.predict(numpy.load(sys.argv[1] + "/new.npy")))
"""
subprocess.run([sys.executable, "-c", code, str(folder)], check=True)
labels = np.load(folder / "labels.npy")
model = methods.load(folder / "release")
assert (labels == model.predict(np.asarray(test.x))).all()
accuracy = np.mean(labels == test.y)
print(f"accuracy {accuracy:.3f}, majority class {max(np.mean(test.y), 1 - np.mean(test.y)):.3f}")
assert accuracy > 0.7

# %%
figure, axis = plt.subplots(figsize=(4.4, 3.6))
axis.scatter(test.x[:, 0], test.x[:, 1], c=labels, s=8, cmap="coolwarm")
axis.set(xlabel="first feature", ylabel="second feature", title="labels of the released model")
figure.tight_layout()
