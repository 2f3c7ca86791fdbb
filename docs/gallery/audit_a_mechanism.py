# %% [markdown]
# # Audit a mechanism
#
# Somebody claims epsilon 1. Run the mechanism many times on two neighboring data sets and see how
# well they can be told apart: that gives a lower bound on epsilon that holds with 95% confidence.
# A bound above the claim refutes it.

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

from jaxfair import accounting, auditing
from jaxfair.privacy import noise

sigma = accounting.gaussian_sigma(epsilon=1.0, delta=1e-5, sensitivity=1.0)
ages = jnp.full(100, 40.0)
typo = ages.at[0].set(4000.0)


def mean_age(people, key):
  return noise.gaussian(jnp.mean(people), sigma=sigma, key=key)


def bounded_mean_age(people, key):
  return mean_age(jnp.clip(people, 0, 100), key)


# %%
bounds = {
  mechanism.__name__: auditing.audit_mechanism(
    mechanism, ages, typo, num_runs=5000, delta=1e-5, key=jax.random.key(0)
  ).epsilon
  for mechanism in (mean_age, bounded_mean_age)
}
print({name: round(float(bound), 3) for name, bound in bounds.items()})
assert bounds["mean_age"] > 1.0 >= bounds["bounded_mean_age"]

# %% [markdown]
# The picture shows why: without a bound on ages the outputs of the two data sets hardly overlap.

# %%
keys = jax.random.split(jax.random.key(1), 2000)
figure, axes = plt.subplots(1, 2, figsize=(8, 3), sharey=True)
for axis, mechanism in zip(axes, (mean_age, bounded_mean_age), strict=True):
  for people, name in ((ages, "without the typo"), (typo, "with it")):
    outputs = jax.vmap(lambda key, m=mechanism, p=people: m(p, key))(keys)
    axis.hist(np.asarray(outputs), bins=40, alpha=0.6, label=name)
  axis.set(title=f"{mechanism.__name__}: epsilon at least {bounds[mechanism.__name__]:.2f}")
  axis.set_xlabel("released value")
axes[0].legend(frameon=False)
figure.tight_layout()
