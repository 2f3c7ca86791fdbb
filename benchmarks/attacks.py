"""PGD for ten epsilons, beside foolbox and torchattacks on the same network.

    pip install foolbox torchattacks
    python benchmarks/attacks.py

Same weights, same images, same constants, no random start, last iterate: the
pushed images must agree to float error, and then the CPU time is compared. The
peers run in PyTorch on one thread and take the epsilons one after another.
"""

import argparse
import sys
from collections.abc import Callable
from typing import Any

import foolbox
import jax
import numpy as np
import timing
import torch
import torchattacks

from jaxfair import models, robustness
from jaxfair.types import Examples

RANGE = (0.0, 1.0)
NORMS = {
  "l_inf": (
    robustness.LINF, np.linspace(0.01, 0.1, 10), foolbox.attacks.LinfPGD,
    torchattacks.PGD,
  ),
  "l_2": (
    robustness.L2, np.linspace(0.2, 2.0, 10), foolbox.attacks.L2PGD,
    torchattacks.PGDL2,
  ),
}  # fmt: skip


def main() -> None:
  """Prints the largest disagreement and the ratios."""
  options = argparse.ArgumentParser(description=__doc__)
  options.add_argument("--images", type=int, default=128)
  options.add_argument("--steps", type=int, default=20)
  options.add_argument("--rounds", type=int, default=5)
  chosen = options.parse_args()
  torch.set_num_threads(1)
  for name, make in (("MLP 784-128-128-10", _mlp), ("CNN 28 x 28", _cnn)):
    for norm in NORMS:
      _compare(f"{name}, {norm}", norm, make, chosen)


def _compare(title: str, norm: str, make: Callable, chosen: Any) -> None:
  model, params, network, images = make(chosen.images)
  ball, epsilons, fool, other = NORMS[norm]
  how = robustness.Attack(
    "PGD", ball, chosen.steps, 0.1, robustness.from_input, 0.0, RANGE,
    keep_best=False,
  )  # fmt: skip
  x = torch.tensor(np.moveaxis(images.x, -1, 1) if images.x.ndim > 2
                   else images.x)  # fmt: skip
  y = torch.tensor(images.y, dtype=torch.long)
  wrapped = foolbox.PyTorchModel(network, bounds=RANGE, device="cpu")
  peer = fool(rel_stepsize=0.1, steps=chosen.steps, random_start=False)

  def ours() -> robustness.Attacked:
    return robustness.attack(
      model, params, images, how, epsilons=epsilons, key=jax.random.key(0)
    )

  def foolboxes() -> Any:
    return peer(wrapped, x, y, epsilons=list(map(float, epsilons)))

  def torchattackers() -> list[Any]:
    found = []
    for epsilon in map(float, epsilons):
      attack = other(network, eps=epsilon, alpha=0.1 * epsilon,
                     steps=chosen.steps, random_start=False)  # fmt: skip
      found.append(attack(x, y))
    return found

  mine = ours()
  _, clipped, success = foolboxes()
  theirs = {"foolbox": clipped, "torchattacks": torchattackers()}
  for name, pushed in theirs.items():
    off = max(
      np.abs(_like(a.numpy(), b) - b).max()
      for a, b in zip(pushed, mine.x, strict=True)
    )
    print(f"{title}: largest difference to {name}'s pixels {off:.1e}")
  same = np.mean(success.numpy() == mine.success)
  print(f"{title}: success masks agree with foolbox's on {same:.2%}")
  found = timing.compare(
    {
      "jaxfair": ours,
      "foolbox": foolboxes,
      "torchattacks": torchattackers,
    },
    rounds=chosen.rounds,
  )
  timing.report(found, "jaxfair", f"{title}: {chosen.images} images, 10 "
                f"epsilons, {chosen.steps} steps, CPU time")  # fmt: skip
  sys.stdout.flush()


def _like(theirs: np.ndarray, ours: np.ndarray) -> np.ndarray:
  return np.moveaxis(theirs, 1, -1) if theirs.ndim > 2 else theirs


def _images(count: int, shape: tuple[int, ...]) -> Examples:
  rng = np.random.default_rng(0)
  x = rng.random((count, *shape), dtype=np.float32)
  y = rng.integers(0, 10, count).astype(np.int32)
  return Examples(x, y, np.zeros(count, np.int32))


def _mlp(count: int) -> tuple[Any, Any, Any, Examples]:
  model, images = models.mlp((128, 128), 10), _images(count, (784,))
  params = model.init(jax.random.key(0), images.x[0])
  layers: list[Any] = []
  for index in range(3):
    weights = params[f"layer_{index}"]
    layer = torch.nn.Linear(*weights["w"].shape)
    layer.weight.data = torch.tensor(np.asarray(weights["w"]).T)
    layer.bias.data = torch.tensor(np.asarray(weights["b"]))
    layers += [layer, torch.nn.ReLU()]
  return model, params, torch.nn.Sequential(*layers[:-1]).eval(), images


def _cnn(count: int) -> tuple[Any, Any, Any, Examples]:
  """Two 3x3 convolutions of stride 2, whose SAME padding is below and right."""
  model, images = models.convnet(10), _images(count, (28, 28, 1))
  params = model.init(jax.random.key(0), images.x[0])
  flat = jax.tree.leaves(params)  # biases before kernels, layer by layer
  pairs = [
    (np.array(k), np.array(b)) for b, k in zip(*2 * [iter(flat)], strict=True)
  ]
  layers: list[Any] = []
  for kernel, bias in pairs[:2]:
    conv = torch.nn.Conv2d(*kernel.shape[2:], 3, stride=2)
    conv.weight.data = torch.tensor(np.transpose(kernel, (3, 2, 0, 1)).copy())
    conv.bias.data = torch.tensor(bias)
    layers += [torch.nn.ZeroPad2d((0, 1, 0, 1)), conv, torch.nn.ReLU()]
  kernel, bias = pairs[2]
  dense = torch.nn.Linear(*kernel.shape)
  # Channels last here, first there.
  rows = kernel.reshape(7, 7, -1, 10).transpose(2, 0, 1, 3).reshape(-1, 10)
  dense.weight.data = torch.tensor(rows.T.copy())
  dense.bias.data = torch.tensor(bias)
  network = torch.nn.Sequential(*layers, torch.nn.Flatten(), dense)
  return model, params, network.eval(), images


if __name__ == "__main__":
  main()
