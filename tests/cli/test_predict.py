"""Predictions as a file."""

import io

import numpy as np

from jaxfair.cli import _predict
from jaxfair.methods._serving import serve

from ..methods.test_released import released


def test_a_class_that_a_spreadsheet_would_run_is_text_and_a_number_is_a_number():
  for names, first in (
    (("=cmd()", "yes"), "'=cmd()"),
    (("-1", "+1"), "-1"),
    (("@sum", "\tx"), "'@sum"),
  ):
    own, file = released(class_names=names, abstention=None), io.StringIO()
    found = serve(own, np.zeros((1, 3), np.float32))
    found = found._replace(labels=np.zeros(1, np.int32))
    _predict._write(file, own, found, True)
    head, row = file.getvalue().splitlines()
    assert row.split(",")[1] == first
    assert head.split(",")[2] == f"probability of {names[0]}"
