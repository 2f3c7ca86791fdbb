# %% [markdown]
# # Why: gradient norms and Hessian traces
#
# Two groups are equally easy to classify, and the inputs of the second are larger. Its gradients
# are larger, so clipping cuts them, and its loss is more curved, so noise on the parameters raises
# it more. Both are computed exactly here, for every person.

# %%
import jax
import matplotlib.pyplot as plt
import numpy as np

from jaxfair import analysis, data, models, training

people = data.two_gaussians((600, 600), norms=(2.0, 5.0), key=jax.random.key(0)).examples
model, loss = models.logistic(2), models.cross_entropy
config = training.FitConfig(steps=200, batch_size=None, learning_rate=0.1)
fit = training.fit(model, loss, people, config, key=jax.random.key(1))
accuracy = np.mean(models.predict(model, fit.params, people.x) == people.y)
print(f"accuracy {accuracy:.3f}, majority class {np.mean(people.y == 1):.3f}")
assert accuracy > 0.75

# %%
norms = analysis.norms(model, loss, fit.params, people, num_groups=2)
traces = analysis.hessian_trace(model, loss, fit.params, people, num_groups=2)
print("mean gradient norm by group", np.round(norms.mean_gradient.group, 2))
print("mean Hessian trace by group", np.round(traces.traces.group, 2))

# %% [markdown]
# One dot is a person. The two figures that decide what DP-SGD costs a person grow together, and
# both are larger in group 1.

# %%
figure, axis = plt.subplots(figsize=(5, 3.4))
for group in (0, 1):
  own = np.asarray(people.group) == group
  each = np.asarray(norms.gradients)[own], np.asarray(traces.per_person)[own]
  axis.scatter(*each, s=6, alpha=0.5, label=f"group {group}")
axis.set(xlabel="norm of the gradient", ylabel="trace of the Hessian")
axis.legend(frameon=False)
figure.tight_layout()

# %% [markdown]
# `decompose` predicts how much one step of DP-SGD adds to each group's loss through clipping and
# through noise.

# %%
step = analysis.StepSettings(
  learning_rate=0.5, l2_clip=0.5, noise_multiplier=2.0, sampling_rate=0.05
)
terms = analysis.decompose(model, loss, fit.params, people, step, num_groups=2)
print("through clipping", np.asarray(terms.clipping.group))
print("through noise   ", np.asarray(terms.noise.group))
assert terms.noise.group[1] > terms.noise.group[0]
