"""Names on pages are explained there."""

import pytest

from jaxfair.experiments import Table, _words
from jaxfair.studies import disclosure
from jaxfair.studies.sf_pate import common


@pytest.mark.parametrize(
  "names",
  [
    (common.SF_S, common.SF_T, common.SF_S_OWN, common.SF_T_OWN),
    (common.M, common.M_CORRECTED, common.PF_LD, common.PF_LD_COARSE),
    (disclosure.ENTROPY, disclosure.PROGRESS, disclosure.IMPORTANCE, disclosure.OPTIMUM),
  ],
)
def test_names_of_settings_are_in_the_glossary(names):
  told = dict(
    _words.glossary(Table.from_rows([{"method": name, "leakage": 1.0} for name in names]))
  )
  assert set(told) == {"leakage", *names}
