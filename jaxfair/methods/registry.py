"""The table of methods."""

from jaxfair import checks
from jaxfair.methods.baselines import MajorityClass, Plain
from jaxfair.methods.fair_teachers import FairPate, PateSIn, PateSPre
from jaxfair.methods.gradients import DpSgd, FairDpSgd
from jaxfair.methods.method import Method
from jaxfair.methods.perturbation import OutputPerturbation
from jaxfair.methods.private_groups import PrivateLagrangian, RandomizedGroups
from jaxfair.methods.sf_pate import SfPateS, SfPateT
from jaxfair.methods.teachers import ConfidentPate, Pate

METHODS: dict[str, Method] = {}


def register(method: Method) -> Method:
  """Adds a method under its name, which must be new."""
  checks.require(
    method.name not in METHODS, f"there is a method {method.name!r} already; choose another name"
  )
  METHODS[method.name] = method
  return method


def get(name: str) -> Method:
  """The method of this name."""
  checks.one_of("method", name, METHODS)
  return METHODS[name]


for _method in (
  DpSgd(),
  FairDpSgd(),
  OutputPerturbation(),
  Pate(),
  ConfidentPate(),
  FairPate(),
  PateSPre(),
  PateSIn(),
  SfPateS(),
  SfPateT(),
  RandomizedGroups(),
  PrivateLagrangian(),
  Plain(),
  MajorityClass(),
):
  register(_method)
