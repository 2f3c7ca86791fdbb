"""People who stay on disk, as a release takes them: test people in memory, all others by batch."""

import dataclasses
import json
import pathlib

import jax
import numpy as np

from jaxfair import checks, data
from jaxfair.data import _sources
from jaxfair.data._source_views import SourceView
from jaxfair.methods import Population, Preprocessing
from jaxfair.training._streaming import absent_people
from jaxfair.types import Examples, Source

MOST_TEST = 50_000  # people on disk who measure a model; more would change no digit that is shown


@dataclasses.dataclass(frozen=True, eq=False)
class StoredPeople:
  """The people of a folder of `data.write_source`.

  Attributes:
    name: name of the data set.
    source: everybody.
    encoder: how they were encoded.
    identity: of the file that they were read from; as private as they are.
  """

  name: str
  source: Source
  encoder: data.Encoder
  identity: bytes

  @property
  def size(self) -> int:
    """Number of people."""
    return self.source.size

  def parts(self, test: int, *, key: jax.Array) -> tuple[np.ndarray, Examples]:
    """Row numbers of test people, ascending, and these people."""
    drawn = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    rows = np.sort(drawn.choice(self.size, test, replace=False, shuffle=False))
    return rows, self.source.take(rows)

  def population(
    self, test_rows: np.ndarray, made: Preprocessing, public: Examples | None
  ) -> Population:
    """All but the test people, whose features are scaled when they are read."""
    scaler, every = made.scaler, len(self.encoder.feature_names)
    # Features that were not bought are left out.
    fewer = () if len(made.kept) == every else (made.kept,)
    told = [np.asarray(part).tolist() for part in (test_rows, *scaler, *fewer)]
    source = SourceView(self.source, test_rows, made.apply, repr(told))
    return Population(
      private=absent_people(source),
      source=source,
      public=None if public is None else public._replace(x=made.apply(public.x)),
      class_names=self.encoder.class_names,
      group_names=self.encoder.group_names,
      scaler=scaler,
      encoder=made.encoder,
      name=self.name,
      assumed_public=made.assumed_public,
      bought=made.event,
    )

  def unscaled(self, test_rows: np.ndarray) -> Source:
    """All but the test people, as they were encoded."""
    return SourceView(self.source, test_rows, lambda x: x, "")


def open_stored(folder: str, name: str | None = None) -> StoredPeople:
  """Opens a folder of `data.write_source`.

  Raises:
    DataError: if it is none, or does not say how its people were encoded.
  """
  path = pathlib.Path(folder)
  source = data.open_source(path)
  record = json.loads((path / _sources.RECORD).read_text(encoding="utf-8"))
  if "encoder" not in record:
    raise data.DataError(
      f"{folder} has no encoder for its features, so a model trained on it could not predict "
      "for new people; write it again with data.write_source and without transform"
    )
  encoder = data.Encoder.from_record(record["encoder"])
  groups = np.load(path / "group.npy", mmap_mode="r")
  unknown = int(np.count_nonzero(groups < 0))
  checks.require(
    unknown == 0,
    f"{unknown} people of {folder} are in groups that its encoder does not know "
    f"({', '.join(encoder.group_names)}); write it again with an encoder that knows them",
  )
  identity = bytes.fromhex(record["identity"])
  return StoredPeople(name or path.stem, source, encoder, identity)
