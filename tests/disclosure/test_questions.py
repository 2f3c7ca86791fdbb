"""Which features belong to a question, and which answers are possible."""

import numpy as np
import pytest

from helpers import disclosure_cases as cases
from jaxfair import checks, disclosure
from jaxfair.disclosure import _questions


def test_a_column_of_words_is_one_question():
  names, asked = disclosure.questions(cases.FEATURES, cases.COLUMNS, ("job", "pay"), step=0.2)
  assert names == ("job", "pay")
  assert asked.members.tolist() == [
    [False, True, True, True, False, False],
    [False, False, False, False, True, False],
  ]
  assert asked.counts.tolist() == [3, 11]
  words = np.unique(asked.values[0], axis=0)
  assert len(words) == 3
  assert (words[:, 1:4].sum(axis=1) == -1).all()
  np.testing.assert_allclose(asked.values[1, :, 4], np.linspace(-1, 1, 11))


def test_public_features_are_known_from_the_start():
  asked = cases.asked("job", "pay")
  known = asked.known(np.array([False, True]))
  assert known.tolist() == [True, False, False, False, True, True]


def test_a_feature_that_never_varies_has_one_answer():
  x = cases.people(50)
  x[:, 2] = 0.0
  fixed = _questions.with_constants(cases.asked("job"), x)
  assert (np.asarray(fixed.values)[0, :, 2] == 0).all()
  assert (np.asarray(fixed.values)[0, :, 1] != 0).all()


@pytest.mark.parametrize(
  ("sensitive", "told"),
  [
    (("jobs",), "sensitive='jobs' is not a column.*did you mean job"),
    (("job=a",), "is not a column"),
    ((), "name at least one"),
    (("job", "job"), "twice"),
  ],
)
def test_names_that_are_no_columns_are_refused(sensitive, told):
  with pytest.raises(checks.ArgumentError, match=told):
    disclosure.questions(cases.FEATURES, cases.COLUMNS, sensitive)
