# %% [markdown]
# # Minimal disclosure: ask only for what decides
#
# A linear model decides about loans. Many people's cases are decided before every question has been
# asked: whatever the hidden features are, the label stays the same with probability 1 - delta.

# %%
import jax
import matplotlib.pyplot as plt
import numpy as np

from jaxfair import disclosure, models, training
from jaxfair.types import Examples

rng = np.random.default_rng(0)
names = ("income", "debt", "age", "place")
x = np.tanh(rng.normal(size=(600, 4)) + 0.6 * rng.normal(size=(600, 1))).astype(np.float32)
y = (x @ np.array([1.5, -1.0, 0.3, 0.0]) + 0.1 * rng.normal(size=600) > 0).astype(np.int32)
people = Examples(x, y, np.zeros(600, np.int32))
model = models.logistic(2)
config = training.FitConfig(steps=200, batch_size=None, learning_rate=0.1)
params = training.fit(model, models.cross_entropy, people, config, key=jax.random.key(1)).params
accuracy = np.mean(models.predict(model, params, x) == y)
print(f"accuracy {accuracy:.3f}, majority class {max(y.mean(), 1 - y.mean()):.3f}")
assert accuracy > 0.9

# %%
law = disclosure.fit_gaussian(x)
_, asked = disclosure.questions(names, names, sensitive=names)
deltas, counts = (0.0, 0.05, 0.2), []
for delta in deltas:
  found = disclosure.disclose(
    model,
    params,
    law,
    asked,
    x[:200],
    delta=delta,
    chooser=disclosure.ByProgress(),
    key=jax.random.key(2),
  )
  counts.append(np.asarray(found.count))
print("questions per person:", [round(float(c.mean()), 2) for c in counts])
assert counts[-1].mean() < counts[0].mean() <= 4

# %%
figure, axis = plt.subplots(figsize=(5.4, 3.2))
for i, (delta, count) in enumerate(zip(deltas, counts, strict=True)):
  heights = np.bincount(count, minlength=5)
  axis.bar(np.arange(5) + 0.27 * (i - 1), heights, 0.25, label=f"delta {delta:g}")
axis.set(xlabel="questions asked, of 4", ylabel="people")
axis.legend(frameon=False)
figure.tight_layout()
