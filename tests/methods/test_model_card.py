"""The model card says what is promised, never more, and nothing that was measured."""

import dataclasses
import json
import math
import re

import numpy as np
import pytest

from jaxfair import accounting, methods
from jaxfair.methods import _model_card, _released
from jaxfair.pate._attribute import Protection

from .test_released import GUARANTEE, released


def test_right_guesses_are_those_of_the_best_test():
  """Against the mechanism that attains (epsilon, delta), enumerated."""
  for epsilon, delta in ((1.0, 0.0), (0.1, 1e-2), (3.0, 1e-5)):
    high = (1 - delta) * math.exp(epsilon) / (1 + math.exp(epsilon))
    first = np.array([delta, high, 1 - delta - high, 0.0])
    best = 0.5 * np.maximum(first, first[::-1]).sum()
    assert _model_card.right_guesses(epsilon, delta) == pytest.approx(best)
  assert _model_card.right_guesses(800.0, 0.1) == 1.0


def card_of(own):
  record = dataclasses.asdict(_released._record(own))
  planned = own.answer_targets is not None
  found = _model_card.files(record, planned=planned)
  return {name: content.decode() for name, content in found.items()}


def test_the_card_says_everything_in_all_three_forms():
  own = released()
  found = card_of(own)
  card = json.loads(found["model_card.json"])
  assert card["privacy"]["epsilon"] == 1.0
  assert card["privacy"]["most_right_guesses"] == 0.732  # 0.73106, rounded up
  page = re.sub(r"<[^>]+>", "\n", found["model_card.html"])
  for text in (found["model_card.md"], page):
    for what in (
      "a record",
      "the number of people, which is public",
      "one person",
      "equal except for the record of one person",
      "more than 73.2 times in 100",
      "1 in 100,000",
      "epsilon 3 for one person",
      "0.1 or more between groups",
      "to see who asks",
    ):
      assert what in text, what
  assert "http" not in found["model_card.html"]
  assert "NOT FOR RELEASE" not in "".join(found.values())


def test_a_model_with_guessable_noise_is_marked():
  seeded = dataclasses.replace(GUARANTEE, for_release=False)
  for text in list(card_of(released(guarantee=seeded)).values())[1:]:
    assert "NOT FOR RELEASE" in text


def test_spending_under_two_relations_is_not_added_up():
  for spending, told in ((("epsilon 3", "epsilon 4"), True), (("epsilon 3",), False)):
    text = card_of(released(spending=spending))["model_card.md"]
    assert ("cannot be added up" in text) is told


def test_a_large_epsilon_is_called_weak_and_names_are_escaped():
  promised = dataclasses.replace(GUARANTEE.guarantee, epsilon=30.0)
  told = Protection(promised, ("a <b>",), ("x | y",), for_release=True)
  found = card_of(released(guarantee=told, class_names=("<script>", "yes")))
  assert "is a weak guarantee" in found["model_card.md"]
  assert "<script>" not in found["model_card.html"]
  assert not re.search(r"(?<!\\)<", found["model_card.md"])


def test_every_method_and_relation_has_words():
  private = {name for name, method in methods.METHODS.items() if method.protects}
  assert set(_model_card.IN_WORDS) >= private
  assert set(_model_card.GUESS) == set(_model_card.NEIGHBORS) == set(accounting.Relation)
