"""PGD for ten epsilons, beside foolbox and torchattacks on the same network.

    pip install -e .[test] torch torchattacks
    python benchmarks/attacks.py

The digits that come with jaxfair, enlarged to 28 x 28. Same trained weights,
same constants, no random start, last iterate: first the pushed images are
compared, then the CPU time, also that of `stop="smallest"`, the search for the
smallest epsilon that breaks an image. The peers run in PyTorch on one thread
and take the epsilons one after another; they have no option to leave an image
that is broken.
"""

import argparse
import sys
from typing import Any

import foolbox
import jax
import numpy as np
import timing
import torch
import torchattacks

from jaxfair import data, models, robustness, training
from jaxfair.robustness import _attacks
from jaxfair.types import Examples

NETWORKS = ("small", "mlp", "cnn")
RANGE = (0.0, 1.0)
NORMS = {  # with a length of the largest l_2 push over that of l_inf
  "l_inf": (robustness.LINF, 1, foolbox.attacks.LinfPGD, torchattacks.PGD),
  "l_2": (robustness.L2, 20, foolbox.attacks.L2PGD, torchattacks.PGDL2),
}


def main() -> None:
  """Prints the largest disagreement and the ratios."""
  options = argparse.ArgumentParser(description=__doc__)
  options.add_argument("--images", type=int, default=256)
  options.add_argument("--steps", type=int, default=20)
  options.add_argument("--rounds", type=int, default=5)
  options.add_argument("--largest", type=float, default=0.2, help="epsilon")
  options.add_argument("--network", choices=NETWORKS, action="append")
  chosen = options.parse_args()
  torch.set_num_threads(1)
  train, test = _digits(chosen.images)
  networks = {
    "small": ("MLP 784-16-10", models.mlp((16,), 10), _mlp),
    "mlp": ("MLP 784-128-128-10", models.mlp((128, 128), 10), _mlp),
    "cnn": ("CNN, 3x3 stride 2, 16 and 32", models.convnet(10), _cnn),
  }
  for kind in chosen.network or NETWORKS:
    name, model, copy = networks[kind]
    config = training.FitConfig(learning_rate=2e-3, steps=300, batch_size=64)
    params = training.fit(model, models.cross_entropy, train, config, key=jax.random.key(0)).params
    for norm in NORMS:
      _compare(f"{name}, {norm}", norm, model, params, copy(params), test, chosen)


def _compare(
  title: str, norm: str, model: Any, params: Any, network: Any, test: Examples, chosen: Any
) -> None:
  ball, length, fool, other = NORMS[norm]
  epsilons = chosen.largest * length * np.linspace(0.1, 1.0, 10)
  how = _attacks.Attack(
    "PGD", ball, chosen.steps, 0.1, _attacks.from_input, 0.0, RANGE, keep_best=False
  )
  x = torch.tensor(np.moveaxis(test.x, -1, 1).copy())
  y = torch.tensor(test.y, dtype=torch.long)
  wrapped = foolbox.PyTorchModel(network, bounds=RANGE, device="cpu")
  peer = fool(rel_stepsize=0.1, steps=chosen.steps, random_start=False)

  def ours() -> Any:
    return robustness.attack(model, params, test, how, epsilons=epsilons, key=jax.random.key(0))

  def smallest() -> Any:
    return robustness.attack(
      model, params, test, how, epsilons=epsilons, key=jax.random.key(0), stop="smallest"
    )

  def foolboxes() -> Any:
    return peer(wrapped, x, y, epsilons=list(map(float, epsilons)))

  def torchattackers() -> list[Any]:
    found = []
    for epsilon in map(float, epsilons):
      attack = other(
        network, eps=epsilon, alpha=0.1 * epsilon, steps=chosen.steps, random_start=False
      )
      found.append(attack(x, y))
    return found

  mine = ours()
  _, clipped, success = foolboxes()
  for name, pushed in (("foolbox", clipped), ("torchattacks", torchattackers())):
    theirs = np.stack([np.moveaxis(p.numpy(), 1, -1) for p in pushed])
    off = np.abs(theirs - mine.x)
    print(
      f"{title}: {np.mean(off < 1e-5):.4%} of {name}'s pixels within 1e-5, the "
      f"furthest {off.max():.1e}"
    )
  broken = success.numpy()
  print(
    f"{title}: broken by foolbox {broken.mean():.4f}, here "
    f"{mine.success.mean():.4f}, alike on {np.mean(broken == mine.success):.2%}"
  )
  least = smallest()
  print(
    f"{title}: broken by the search {least.success.mean():.4f}; foolbox breaks "
    f"{np.sum(broken & ~least.success)} pairs of {broken.size} that it does "
    f"not, and it {np.sum(least.success & ~broken)} that foolbox does not"
  )
  found = timing.compare(
    {
      'stop="smallest"': smallest,
      "jaxfair": ours,
      "foolbox": foolboxes,
      "torchattacks": torchattackers,
    },
    rounds=chosen.rounds,
  )
  timing.report(
    found,
    'stop="smallest"',
    f"{title}: {test.size} images, 10 epsilons up to "
    f"{epsilons[-1]:g}, {chosen.steps} steps, CPU time",
  )
  sys.stdout.flush()


def _digits(count: int) -> tuple[Examples, Examples]:
  digits = data.load("digits", group="label").examples
  large = np.repeat(np.repeat(digits.x, 3, axis=1), 3, axis=2)
  large = np.pad(large, ((0, 0), (2, 2), (2, 2), (0, 0)))
  people = digits._replace(x=large.astype(np.float32))
  return people.take(np.arange(count, people.size)), people.take(np.arange(count))


def _mlp(params: Any) -> torch.nn.Module:
  layers: list[Any] = [torch.nn.Flatten()]
  for index in range(len(params)):
    weights = params[f"layer_{index}"]
    layers += [_dense(np.array(weights["w"]), np.array(weights["b"])), torch.nn.ReLU()]
  return torch.nn.Sequential(*layers[:-1]).eval()


def _cnn(params: Any) -> torch.nn.Module:
  """SAME padding of stride 2 on an even side is below and right."""
  flat = iter(jax.tree.leaves(params))  # bias before kernel, layer by layer
  pairs = [(np.array(k), np.array(b)) for b, k in zip(flat, flat, strict=True)]
  layers: list[Any] = []
  for kernel, bias in pairs[:2]:
    conv = torch.nn.Conv2d(*kernel.shape[2:], 3, stride=2)
    conv.weight.data = torch.tensor(np.transpose(kernel, (3, 2, 0, 1)).copy())
    conv.bias.data = torch.tensor(bias)
    layers += [torch.nn.ZeroPad2d((0, 1, 0, 1)), conv, torch.nn.ReLU()]
  kernel, bias = pairs[2]
  # Channels last here, first there.
  rows = kernel.reshape(7, 7, -1, 10).transpose(2, 0, 1, 3).reshape(-1, 10)
  return torch.nn.Sequential(*layers, torch.nn.Flatten(), _dense(rows, bias)).eval()


def _dense(kernel: np.ndarray, bias: np.ndarray) -> torch.nn.Module:
  layer = torch.nn.Linear(*kernel.shape)
  layer.weight.data = torch.tensor(kernel.T.copy())
  layer.bias.data = torch.tensor(bias)
  return layer


if __name__ == "__main__":
  main()
