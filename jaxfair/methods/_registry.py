"""The table of methods."""

from jaxfair import checks
from jaxfair.methods._baselines import MajorityClass, Plain
from jaxfair.methods._chosen_queries import ChoosingPate
from jaxfair.methods._fair_queries import ChoosingFairPate
from jaxfair.methods._fair_teachers import PateSIn, PateSPre
from jaxfair.methods._gradients import DpSgd, DpSgdGlobal, FairDpSgd
from jaxfair.methods._group_gradients import DpSgdF, DpSgdParity
from jaxfair.methods._method import Method
from jaxfair.methods._perturbation import OutputPerturbation
from jaxfair.methods._private_groups import PrivateLagrangian, RandomizedGroups
from jaxfair.methods._sf_pate import SfPateS, SfPateT
from jaxfair.methods._soft_teachers import FairSoftPate, SoftPate
from jaxfair.methods._teachers import ConfidentPate
from jaxfair.methods._tuning import TunedDpSgd

METHODS: dict[str, Method] = {}


def register(method: Method) -> Method:
  """Adds a method under its name, which must be new."""
  checks.require(
    method.name not in METHODS, f"there is a method {method.name!r} already; choose another name"
  )
  METHODS[method.name] = method
  return method


def get(name: str) -> Method:
  """The registered method with this name."""
  checks.one_of("method", name, METHODS)
  return METHODS[name]


for _method in (
  DpSgd(),
  DpSgdGlobal(),
  DpSgdF(),
  DpSgdParity(),
  FairDpSgd(),
  TunedDpSgd(),
  OutputPerturbation(),
  ChoosingPate(),
  ConfidentPate(),
  ChoosingFairPate(),
  PateSPre(),
  PateSIn(),
  SoftPate(),
  FairSoftPate(),
  SfPateS(),
  SfPateT(),
  RandomizedGroups(),
  PrivateLagrangian(),
  Plain(),
  MajorityClass(),
):
  register(_method)
