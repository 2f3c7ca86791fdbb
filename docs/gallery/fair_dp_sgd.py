# %% [markdown]
# # Repair: FairDP-SGD
#
# Group 1 gets the positive label half as often in the data, a feature tells the groups apart, and a
# private model repeats what it sees. `training.parity_penalty` pulls the groups' rates together. It
# is computed on public people, so it costs no epsilon.

# %%
import jax
import matplotlib.pyplot as plt
import numpy as np

from jaxfair import data, fairness, models, training
from jaxfair.types import Examples

rng = np.random.default_rng(0)
group = rng.integers(0, 2, 3000)
y = (rng.random(3000) < np.where(group == 1, 0.3, 0.6)).astype(np.int32)
skill, proxy = y + 0.8 * rng.normal(size=3000), group + 0.5 * rng.normal(size=3000)
x = np.stack([skill - 0.5, proxy - 0.5], axis=1).astype(np.float32)
everyone = Examples(x, y, group.astype(np.int32))
public, private, test = data.split(everyone, (500, 1500, 1000), key=jax.random.key(1))
model, loss = models.logistic(2), models.cross_entropy

# %%
weights, gaps, accuracies = (0.0, 1.0, 4.0), [], []
for lam in weights:
  penalty = training.parity_penalty(model, public.x, public.group, num_groups=2, lam=lam)
  config = training.DpSgdConfig(
    steps=60, batch_size=200, learning_rate=1.0, penalties=(penalty,) if lam else ()
  )
  trained = training.train_to_budget(
    model, loss, private, config, epsilon=1.0, delta=1e-5, key=jax.random.key(2)
  )
  guess = models.predict(model, trained.params, test.x)
  gaps.append(
    float(fairness.demographic_parity_difference(test.y, guess, sensitive_features=test.group))
  )
  accuracies.append(float(np.mean(guess == test.y)))
majority = max(np.mean(test.y), 1 - np.mean(test.y))
print(trained.guarantee)
print("gaps", np.round(gaps, 3), "accuracies", np.round(accuracies, 3), "majority", majority)
assert accuracies[0] > majority + 0.05
assert gaps[-1] < 0.7 * gaps[0]

# %%
figure, axis = plt.subplots(figsize=(5, 3.2))
axis.plot(gaps, accuracies, "o-")
for lam, gap, accuracy in zip(weights, gaps, accuracies, strict=True):
  axis.annotate(f"weight {lam:g}", (gap, accuracy), textcoords="offset points", xytext=(6, -3))
axis.axhline(majority, color="gray", linestyle=":", label="majority class")
axis.set(xlabel="demographic parity difference", ylabel="accuracy")
axis.margins(x=0.2)
axis.legend(frameon=False)
figure.tight_layout()
