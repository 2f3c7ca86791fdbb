# %% [markdown]
# # FairPATE: a frontier, and a point on it
#
# FairPATE answers a query only if the answer keeps the groups' rates within `max_gap`. Each pair of
# a budget and a gap gives one point: epsilon, gap, accuracy of the answers, share of queries
# answered. A person sets limits and takes the best point within them.

# %%
import jax
import matplotlib.pyplot as plt
import numpy as np

from jaxfair import accounting, fairness, frontier, pate

rng = np.random.default_rng(0)
groups = rng.integers(0, 2, 600)
truth = (rng.random(600) < np.where(groups, 0.65, 0.35)).astype(int)
right = rng.binomial(100, np.where(groups, 0.8, 0.9))  # of 100 teachers
counts = np.zeros((600, 2), int)
counts[np.arange(600), truth] = right
counts[np.arange(600), 1 - truth] = 100 - right
assert np.mean(counts.argmax(axis=1) == truth) > 0.9  # the majority class has about a half

# %%
budgets, limits, seeds = (1.0, 3.0, 8.0), (0.05, 0.2, 0.5), 3
values = []
for epsilon in budgets:
  rho = accounting.zcdp_budget(epsilon=epsilon, delta=1e-5)
  for max_gap in limits:
    rows = []
    for seed in range(seeds):
      answers = pate.fair_gnmax(
        counts,
        groups,
        num_groups=2,
        threshold=60,
        sigma_threshold=60.0,
        sigma_answer=25.0,
        max_gap=max_gap,
        min_count=20,
        max_rho=rho,
        key=jax.random.key(seed),
      )
      told = np.asarray(answers.labels) != pate.NO_ANSWER
      gap = float(np.max(fairness.demographic_disparity(answers.counters)))
      accuracy = np.mean(np.asarray(answers.labels)[told] == truth[told])
      rows.append((epsilon, gap, accuracy, told.mean()))
    values.append(rows)
points = frontier.points(np.array(values))
efficient = frontier.non_dominated(points.means, points.better)
print(points.means.round(3))

# %%
left = frontier.specify(points, {"epsilon": 8.0, "gap": 0.3})
chosen = frontier.best(points, left.satisfied)
print("chosen epsilon, gap, accuracy and coverage:", points.means[chosen].round(3))

figure, axis = plt.subplots(figsize=(5.4, 3.4))
for epsilon in budgets:
  own = points.means[:, 0] == epsilon
  axis.plot(points.means[own, 1], points.means[own, 3], "o-", label=f"epsilon {epsilon:g}")
axis.plot(*points.means[chosen, [1, 3]], "k*", markersize=14, label="chosen")
axis.set(xlabel="gap between the groups", ylabel="share of queries answered")
axis.legend(frameon=False)
figure.tight_layout()
