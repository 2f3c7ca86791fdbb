"""Extractors of features by name, as configs refer to them."""

from jaxfair import checks
from jaxfair.models._features import Extractor
from jaxfair.models._pretrained import pretrained
from jaxfair.models._scattering import scattering

# Spreads of ink of `scattering(moments=...)`: a guess for digits that are written in a box of
# 20 x 20 pixels, not computed from people.
DIGIT_SPREADS = (5.5, 3.6)
SCATTERING = {"scattering": None, "moment_scattering": DIGIT_SPREADS}
EXTRACTORS = ("efficientnet_lite0", "efficientnet_lite1", "efficientnet_lite2", *SCATTERING)


def extractor(name: str) -> Extractor:
  """The extractor with this name, as configs refer to it, with default settings."""
  checks.one_of("features", name, EXTRACTORS)
  return scattering(moments=SCATTERING[name]) if name in SCATTERING else pretrained(name)
