# %% [markdown]
# # Fair and robust: who is easy to attack?
#
# An attacker may change each pixel a little. Digits near a decision boundary fall first, so the
# error under attack differs between groups more than the error without one.

# %%
import jax
import matplotlib.pyplot as plt
import numpy as np

from jaxfair import data, models, robustness, training

digits = data.load("digits", group="label")
rows = data.split_rows(digits.size, (1000, 400), key=jax.random.key(0))
train, test = (digits.examples.take(part) for part in rows)
model = models.mlp((32,), digits.num_classes)
config = training.FitConfig(steps=200, batch_size=128, learning_rate=5e-3)
params = training.fit(model, models.cross_entropy, train, config, key=jax.random.key(1)).params
accuracy = np.mean(models.predict(model, params, test.x) == test.y)
print(f"accuracy {accuracy:.3f}; the majority class has a tenth")
assert accuracy > 0.85

# %%
attack = robustness.pgd(input_range=(0.0, 1.0), steps=10)
epsilons = (0.05, 0.1)
found = robustness.attack(model, params, test, attack, epsilons=epsilons, key=jax.random.key(2))
errors = robustness.attack_errors(model, params, test, found, num_groups=10)
natural, robust = np.asarray(errors.natural.group), np.asarray(errors.robust.group)
print("error without an attack", natural.round(2))
print("error under attack     ", robust.round(2))

# %%
figure, axis = plt.subplots(figsize=(6, 3.2))
heights = [natural, *robust]
for i, (height, name) in enumerate(zip(heights, ("no attack", *map(str, epsilons)), strict=True)):
  axis.bar(np.arange(10) + 0.27 * (i - 1), height, 0.25, label=name)
axis.set(xticks=range(10), xlabel="digit", ylabel="share of wrong labels")
axis.legend(title="change per pixel", frameon=False)
figure.tight_layout()
