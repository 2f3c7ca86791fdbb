# %% [markdown]
# # PATE: votes, margins and flips
#
# In PATE a person is in the part of one teacher. Noise on the vote counts protects that person, and
# it changes the label of a query only where the vote was close. Groups on whose people teachers
# disagree therefore get more wrong labels.

# %%
import jax
import matplotlib.pyplot as plt
import numpy as np

from jaxfair import accounting, analysis, data, models, pate, training

everyone = data.two_gaussians((3000, 3000), margins=(2.0, 0.5), key=jax.random.key(0)).examples
private, public = data.split(everyone, (5000, 1000), key=jax.random.key(1))
model = models.logistic(2)
parts = data.partition(private, 50, key=jax.random.key(2))
teachers = pate.train_teachers(
  model,
  models.cross_entropy,
  parts,
  training.FitConfig(steps=50, batch_size=None, learning_rate=0.1),
  key=jax.random.key(3),
)
votes = pate.predict_votes(model, teachers, public.x)
counts = np.asarray(pate.vote_counts(votes, 2, num_teachers=50))
accuracy = np.mean(counts.argmax(axis=1) == public.y)
print(f"the plurality is right on {accuracy:.3f} of the queries")
assert accuracy > 0.7

# %%
sigma = 10.0
margins = np.asarray(analysis.vote_margin(counts))
flips = np.asarray(analysis.flip_probability(counts, sigma=sigma))
group = np.asarray(public.group)
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2))
for which in (0, 1):
  left.hist(margins[group == which], bins=20, alpha=0.6, label=f"group {which}")
  right.bar(which, flips[group == which].mean(), 0.6)
left.set(xlabel="votes between first and second class", ylabel="queries")
left.legend(frameon=False)
right.set(xticks=(0, 1), xticklabels=("group 0", "group 1"), ylabel="labels changed by noise")
figure.tight_layout()
assert flips[group == 1].mean() > flips[group == 0].mean()

# %% [markdown]
# The cost does not depend on the votes. A cost for the actual votes can be computed as well, but it
# depends on private data: it is a diagnosis, and its type says so.

# %%
(event,) = accounting.pate_events(sigma=sigma, num_queries=100)
print(accounting.composed_guarantee([event], delta=1e-5, relation=accounting.Relation.REPLACE_ONE))
print(accounting.pate_diagnosis(counts[:100], sigma=sigma, delta=1e-5))
