# %% [markdown]
# # Your own flax network, trained privately
#
# Any flax network without operations across examples can be trained privately. Clipping reads the
# traced program, so no adapter per layer is needed. BatchNorm is refused, because one person would
# move everybody's gradient.

# %%
import flax.linen as nn
import jax
import matplotlib.pyplot as plt
import numpy as np

from jaxfair import data, models, training

digits = data.load("digits", group="label")
public, private, test = data.prepare(digits, (0.1, 0.6, 0.3), key=jax.random.key(0)).parts


class Net(nn.Module):
  """One hidden layer, normalized within each example."""

  @nn.compact
  def __call__(self, x):
    x = x.reshape((x.shape[0], -1))
    x = nn.tanh(nn.LayerNorm()(nn.Dense(32)(x)))
    return nn.Dense(10)(x)


model = models.from_flax(Net())
trained = training.train_to_budget(
  model,
  models.cross_entropy,
  private,
  training.DpSgdConfig(steps=100, batch_size=250, learning_rate=1.0),
  epsilon=8.0,
  delta=1e-5,
)
guess = np.asarray(models.predict(model, trained.params, test.x))
accuracy = np.mean(guess == test.y)
print(trained.guarantee)
print(f"accuracy {accuracy:.3f}; the majority class has a tenth")
assert accuracy > 0.5

# %%
figure, axis = plt.subplots(figsize=(5.6, 3))
axis.bar(range(10), [np.mean(guess[test.y == digit] == digit) for digit in range(10)])
axis.set(xticks=range(10), xlabel="digit", ylabel="accuracy", ylim=(0, 1))
figure.tight_layout()

# %% [markdown]
# What is refused, and how:

# %%
coupled = nn.Sequential([nn.Dense(8), lambda x: x - x.mean(axis=0), nn.Dense(10)])
try:
  training.train_to_budget(
    models.from_flax(coupled),
    models.cross_entropy,
    private._replace(x=np.asarray(private.x).reshape(len(private.x), -1)),
    training.DpSgdConfig(steps=1),
    epsilon=8.0,
    delta=1e-5,
  )
except models.CouplingError as error:
  print(error)
else:
  raise AssertionError("a model that couples examples was not refused")
