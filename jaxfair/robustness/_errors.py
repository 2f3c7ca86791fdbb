"""Natural, boundary and robust error, of everybody and of every group.

  robust error = natural error + boundary error

A prediction counts towards the boundary error if it is right and some allowed
perturbation makes it wrong.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxfair import checks, models
from jaxfair.analysis._by_group import ByGroup
from jaxfair.fairness._groups import group_means
from jaxfair.robustness._attack_many import Attacked
from jaxfair.types import Array, Examples, Groups, Model, Params


class Errors(NamedTuple):
  """Shares of people, for every group and for everybody.

  Attributes:
    natural: wrong without any push.
    boundary: [E] right, and wrong after a push, for every epsilon.
    robust: [E] the sum of both.
  """

  natural: ByGroup
  boundary: ByGroup
  robust: ByGroup

  @property
  def violation(self) -> Any:
    """Largest |natural error of a group - natural error of all| (alpha)."""
    return jnp.nanmax(self.natural.gap)


def attack_errors(
  model: Model, params: Params, examples: Examples, found: Attacked, *, num_groups: int
) -> Errors:
  """Errors that an attack finds: lower bounds of the true robust errors.

  Args:
    model: the attacked model.
    params: its parameters.
    examples: the people who were attacked, with their groups.
    found: what `attack` returned for them.
    num_groups: static number of groups.

  Reference:
    Thesis chapter 6, (6.4) to (6.7).
  """
  size = checks.same_length(**examples._asdict())
  checks.require(
    np.shape(found.success)[1:] == (size,),
    f"the attack was on {np.shape(found.success)[1:]} people, not on these "
    f"{size}; pass the examples that were attacked",
  )
  wrong = np.asarray(models.predict(model, params, examples.x)) != examples.y
  return errors_of(wrong, found.success, examples.group, num_groups=num_groups)


def errors_of(wrong: Array, reached: Array, group: Groups, *, num_groups: int) -> Errors:
  """Errors from who is wrong, and who can be made wrong."""
  wrong, reached = jnp.asarray(wrong, bool), jnp.asarray(reached, bool)
  checks.ids("group", group, num_groups)
  natural = _means(wrong[None], group, num_groups)
  natural = ByGroup(natural.group[0], natural.population[0])
  near = _means(reached & ~wrong, group, num_groups)
  either = _means(reached | wrong, group, num_groups)
  return Errors(natural, near, either)


def _means(flags: Array, group: Groups, num_groups: int) -> ByGroup:
  """[E, n] -> means of every row, by group and of all."""
  values = jnp.asarray(flags, jnp.float32)
  by_group = group_means(values.T, jnp.asarray(group), num_groups)
  return ByGroup(by_group.T, jnp.mean(values, axis=1))
