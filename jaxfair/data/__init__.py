"""Data of people: named sets, your own files, generators; splits, scaling and parts.

Files, labels, groups and their checks are here; models, noise and fairness metrics are not.
"""

from jaxfair.data._colored import color
from jaxfair.data._dataset import Dataset
from jaxfair.data._encoder import Encoder
from jaxfair.data._fetching import fetch
from jaxfair.data._files import DataError
from jaxfair.data._frames import from_csv, from_frame
from jaxfair.data._identity import csv_identity, records_identity
from jaxfair.data._inventory import catalog
from jaxfair.data._loading import load
from jaxfair.data._preparing import prepare
from jaxfair.data._reading import read_table
from jaxfair.data._scaling import bound_rows, fit_scaler
from jaxfair.data._source_files import write_source
from jaxfair.data._sources import open_source
from jaxfair.data._splitting import partition, split, split_rows
from jaxfair.data._synthetic import gaussian_mixture, two_gaussians
from jaxfair.types import Source

__all__ = [
  "DataError",
  "Dataset",
  "Encoder",
  "Source",
  "bound_rows",
  "catalog",
  "color",
  "csv_identity",
  "fetch",
  "fit_scaler",
  "from_csv",
  "from_frame",
  "gaussian_mixture",
  "load",
  "open_source",
  "partition",
  "prepare",
  "read_table",
  "records_identity",
  "split",
  "split_rows",
  "two_gaussians",
  "write_source",
]
