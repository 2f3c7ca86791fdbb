# %% [markdown]
# # Decisions on noisy counts
#
# An agency shares money by the number of children in each district, and the counts are published
# with noise. Counts cannot be negative, so they are cut at zero, and that helps small districts at
# the cost of large ones. A mechanism that releases what is linear in the counts has no such bias.

# %%
import jax
import matplotlib.pyplot as plt
import numpy as np

from jaxfair import decisions

children = np.array([2.0, 5.0, 10.0, 20.0, 50.0, 200.0, 1000.0, 5000.0])
shares = decisions.allotment(np.ones(len(children)))
release = decisions.LaplaceRelease.for_epsilon(0.05)
biased = decisions.simulate(
  lambda counts: shares(decisions.non_negative(counts)),
  children,
  release=release,
  draws=4000,
  key=jax.random.key(0),
)
proxy = decisions.linear_proxy(
  weights=np.ones(len(children)), total=float(children.sum()), epsilon=0.05
)
unbiased = decisions.simulate_mechanism(proxy, shares, children, draws=4000, key=jax.random.key(1))
print("bias of the largest district's share", float(biased.bias[-1]), float(unbiased.bias[-1]))
assert biased.bias[0] > 0 > biased.bias[-1]
assert abs(unbiased.bias[-1]) < abs(biased.bias[-1])

# %%
figure, axis = plt.subplots(figsize=(5.6, 3.2))
places = np.arange(len(children))
axis.bar(places - 0.2, 1e4 * np.asarray(biased.bias), 0.38, label="counts cut at zero")
axis.bar(places + 0.2, 1e4 * np.asarray(unbiased.bias), 0.38, label="linear proxy")
axis.axhline(0, color="gray", linewidth=1)
axis.set(xticks=places, xticklabels=[f"{c:g}" for c in children])
axis.set(xlabel="children in the district", ylabel="dollars gained of 10,000")
axis.legend(frameon=False)
figure.tight_layout()
