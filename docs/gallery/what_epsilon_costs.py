# %% [markdown]
# # What a training costs, and what noise a budget needs
#
# The cost of a training does not depend on the data, only on the noise, the sampling rate and the
# number of steps. The PLD accountant is nearly exact; RDP is a bound that is a little larger.

# %%
import matplotlib.pyplot as plt

from jaxfair import accounting

steps = (10, 30, 100, 300, 1000)
figure, axis = plt.subplots(figsize=(5.4, 3.2))
for accountant in ("pld", "rdp"):
  found = [
    accounting.dp_sgd_epsilon(
      noise_multiplier=1.0, sampling_rate=0.01, steps=count, delta=1e-6, accountant=accountant
    )
    for count in steps
  ]
  axis.plot(steps, found, "o-", label=accountant.upper())
  print(accountant, [round(one, 3) for one in found])
axis.set(xscale="log", xlabel="steps", ylabel="epsilon at delta 1e-6")
axis.legend(frameon=False)
figure.tight_layout()

# %%
needed = accounting.calibrate_dp_sgd(epsilon=1.0, delta=1e-6, sampling_rate=0.01, steps=300)
paid = accounting.max_steps(epsilon=1.0, delta=1e-6, noise_multiplier=needed, sampling_rate=0.01)
print(f"epsilon 1 for 300 steps needs noise {needed:.3f}; that noise pays for {paid} steps")
assert paid >= 300

# %% [markdown]
# Epsilon is about one person. For several people at once, such as a family of four, it grows.

# %%
print(accounting.group_privacy(epsilon=1.0, delta=1e-6, size=4))
