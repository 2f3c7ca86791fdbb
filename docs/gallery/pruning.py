# %% [markdown]
# # Who pays for a smaller network?
#
# Pruning removes the smallest weights. The digits that are hardest for the full network lose most.

# %%
import jax
import matplotlib.pyplot as plt
import numpy as np

from jaxfair import data, models, pruning, training

digits = data.load("digits", group="label")
train, test = data.prepare(digits, (0.7, 0.3), key=jax.random.key(0)).parts
model, loss = models.mlp((32,), digits.num_classes), models.cross_entropy
config = training.FitConfig(steps=200, batch_size=128, learning_rate=5e-3)
dense = training.fit(model, loss, train, config, key=jax.random.key(1)).params
accuracy = np.mean(models.predict(model, dense, test.x) == test.y)
print(f"accuracy {accuracy:.3f}; the majority class has a tenth")
assert accuracy > 0.9

# %%
rates = (0.5, 0.7, 0.8, 0.9)
by_group = []
for rate in rates:
  masks = pruning.magnitude_masks(dense, rate)
  pruned = pruning.apply_masks(dense, masks)
  guess = np.asarray(models.predict(model, pruned, test.x))
  by_group.append([np.mean(guess[test.group == g] == g) for g in range(10)])
by_group = np.array(by_group)
weights = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(pruned)])
print(f"{np.mean(weights == 0):.2f} of all parameters are zero at the last rate")
assert np.ptp(by_group[-1]) > np.ptp(by_group[0])

# %%
figure, axis = plt.subplots(figsize=(5.6, 3.4))
for digit in range(10):
  axis.plot(rates, by_group[:, digit], "o-", label=str(digit), alpha=0.8)
axis.set(xlabel="share of the weights that is removed", ylabel="accuracy on the digit")
axis.legend(title="digit", frameon=False, ncol=2, fontsize=8)
figure.tight_layout()
