# %% [markdown]
# # Who pays for privacy on Adult?
#
# DP-SGD adds the same noise for everybody, and not everybody loses the same accuracy. This example
# trains five plain and five private models and compares them group by group. It uses the Adult data
# set where it is on disk (`JAXFAIR_DATA`) and colored digits that come with jaxfair otherwise.

# %%
import jax
import matplotlib.pyplot as plt
import numpy as np

from jaxfair import data, fairness, models, training

try:
  people = data.load("adult", group="sex")
except data.DataError:
  people = data.load("colored_digits")
public, private, test = data.prepare(people, (0.1, 0.65, 0.25), key=jax.random.key(0)).parts
print(people.name, private.size, "private people; groups:", people.group_names)

# %% [markdown]
# The scaler is fitted on the first part, which counts as public. The noise is calibrated to
# epsilon 0.5; `fit_many` trains all seeds in one program.

# %%
model, loss = models.logistic(people.num_classes), models.cross_entropy
keys = jax.random.split(jax.random.key(1), 5)
config = training.DpSgdConfig(steps=80, batch_size=min(512, private.size // 4), learning_rate=1.0)
config = training.calibrate(config, private.size, epsilon=0.5, delta=1e-5)
settings = {
  "plain": training.FitConfig(steps=80, batch_size=config.batch_size, learning_rate=0.03),
  "private": config,
}
predicted = {}
for name, chosen in settings.items():
  trainer = training.dp_sgd if name == "private" else training.fit
  fits = training.fit_many(model, loss, private, chosen, keys=keys, trainer=trainer)
  predicted[name] = jax.vmap(lambda params: models.predict(model, params, test.x))(fits.params)

majority = np.mean(np.asarray(test.y) == np.bincount(private.y).argmax())
for name, labels in predicted.items():
  print(f"{name}: accuracy {np.mean(labels == test.y):.3f}, majority class {majority:.3f}")
  assert np.mean(labels == test.y) > majority + 0.02

# %% [markdown]
# The accuracy of each group, with 95% intervals over seeds. The plain bar is what the private one
# is to be compared with: a group that is hard for every model pays nothing for being hard.

# %%
figure, axis = plt.subplots(figsize=(6, 3.2))
for i, (name, labels) in enumerate(predicted.items()):
  accuracy = np.stack(
    [fairness.accuracy(test.y, guess, sensitive_features=test.group) for guess in labels]
  )
  found = fairness.seed_interval(accuracy)
  places = np.arange(people.num_groups) + 0.4 * i - 0.2
  spread = np.stack([found.estimate - found.low, found.high - found.estimate])
  axis.bar(places, found.estimate, 0.38, yerr=spread, capsize=3, label=name)
axis.set(xticks=range(people.num_groups), xticklabels=people.group_names, ylabel="accuracy")
axis.set_ylim(0.5, 1.0)
axis.legend(frameon=False, loc="lower right")
figure.tight_layout()
