"""People in: named sets, your own data, generators; splits, scaling, parts.

Files, labels, groups and their checks live here. Models, noise and measures of
fairness never do.
"""

from jaxfair.data._colored import color
from jaxfair.data._columns import Categorical, Numeric
from jaxfair.data._dataset import Dataset, Source
from jaxfair.data._encoder import Encoder
from jaxfair.data._fetching import Fetched, fetch
from jaxfair.data._files import DataError
from jaxfair.data._frames import from_csv, from_frame
from jaxfair.data._identity import csv_identity, named_identity, records_identity
from jaxfair.data._inventory import Check, Description, Entry, catalog, check, describe
from jaxfair.data._loading import load, names
from jaxfair.data._preparing import Prepared, prepare
from jaxfair.data._reading import read_table
from jaxfair.data._scaling import Scale, Scaler, bound_rows, fit_scaler
from jaxfair.data._splitting import partition, split, split_rows
from jaxfair.data._synthetic import gaussian_mixture, two_gaussians

__all__ = [
  "Categorical",
  "Check",
  "DataError",
  "Dataset",
  "Description",
  "Encoder",
  "Entry",
  "Fetched",
  "Numeric",
  "Prepared",
  "Scale",
  "Scaler",
  "Source",
  "bound_rows",
  "catalog",
  "check",
  "color",
  "csv_identity",
  "describe",
  "fetch",
  "fit_scaler",
  "from_csv",
  "from_frame",
  "gaussian_mixture",
  "load",
  "named_identity",
  "names",
  "partition",
  "prepare",
  "read_table",
  "records_identity",
  "split",
  "split_rows",
  "two_gaussians",
]
