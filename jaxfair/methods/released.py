"""A released model: a folder that another process loads and predicts with.

release/
  release.json    network, guarantee, names, abstention rule, versions
  arrays.npz      parameters and scaler, as plain arrays
  statement.txt   what is promised, for people
  sha256.json     a digest of each of these

The digests show damage and careless edits. They are no signature: whoever can
write the folder can write them, too.
"""

import dataclasses
import hashlib
import io
import json
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxfair
from jaxfair import accounting, checks, data, models, schema, whole_files
from jaxfair.fairness import Abstainer, CounterRule
from jaxfair.pate import Protection
from jaxfair.types import Model, Params

FORMAT = 1
RECORD, ARRAYS, STATEMENT = "release.json", "arrays.npz", "statement.txt"
DIGESTS = "sha256.json"
PARAMS, SCALER = "params", "scaler."


class ReleaseError(checks.JaxfairError):
  """A folder that holds no release, or one that was changed."""


@dataclasses.dataclass(frozen=True)
class Network:
  """A network by name, so that it can be written down.

  Attributes:
    name: in `models.NETWORKS`.
    num_classes: number of logits.
    hidden: widths of dense layers, where it has any to choose.
    width: channels of its first convolution; its own by default.
  """

  name: str
  num_classes: int
  hidden: tuple[int, ...] = (64,)
  width: int | None = None

  @property
  def model(self) -> Model:
    """The network itself."""
    return models.network(self.name, self.num_classes, hidden=self.hidden, width=self.width)


@dataclasses.dataclass(frozen=True, eq=False)
class Released:
  """A model with all that must travel along with it.

  Attributes:
    method: how it was made.
    settings: with which settings, as JSON values.
    network: what its parameters belong to.
    params: its parameters.
    guarantee: what is protected, and what is not.
    class_names: the name of class id 0, 1, ...
    group_names: the name of group id 0, 1, ...
    shape: of one person's features.
    dtype: of the features, before scaling.
    scaler: applied to features first; None if they are used as they are.
    row_norm: rows are then projected into a ball of this radius, if set.
    abstention: predictions are shown by this rule; its `max_gap` is the
      margin between groups. None shows all.
  """

  method: str
  settings: dict[str, Any]
  network: Network
  params: Params
  guarantee: Protection
  class_names: tuple[str, ...]
  group_names: tuple[str, ...]
  shape: tuple[int, ...]
  dtype: str = "float32"
  scaler: data.Scaler | None = None
  row_norm: float | None = None
  abstention: CounterRule | None = None

  def prepare(self, x: Any) -> np.ndarray:
    """[n, ...] features as the model was trained on them."""
    x = np.asarray(x, self.dtype)
    checks.require(
      x.shape[1:] == self.shape,
      f"x has people of shape {x.shape[1:]}, and the model was trained on "
      f"{self.shape}; pass the same features, unscaled",
    )
    if self.scaler is not None:
      x = np.asarray(self.scaler.apply(x))
    if self.row_norm is not None:
      flat = data.bound_rows(x.reshape(len(x), -1), self.row_norm)
      x = np.asarray(flat).reshape(x.shape)
    return x

  def scores(self, x: Any) -> np.ndarray:
    """[n, C] probability of each class, from features as they were recorded."""
    return np.asarray(models.scores(self.network.model, self.params, self.prepare(x)))

  def predict(self, x: Any) -> np.ndarray:
    """[n] class ids, from features as they were recorded."""
    return np.asarray(models.predict(self.network.model, self.params, self.prepare(x)))

  def abstainer(self) -> Abstainer:
    """A new gate that keeps predictions within the margin between groups."""
    if self.abstention is None:
      raise checks.ArgumentError(
        f"this model of {self.method} was released without a margin between "
        "groups; show its predictions as they are, or set max_gap"
      )
    return Abstainer(
      self.abstention, num_groups=len(self.group_names), num_classes=len(self.class_names)
    )

  def save(self, folder: str | pathlib.Path) -> None:
    """Writes a folder for `load`, whole or not at all; it must be new."""
    files = {
      RECORD: json.dumps(dataclasses.asdict(_record(self)), indent=2).encode(),
      ARRAYS: _packed(self),
      STATEMENT: (str(self.guarantee) + "\n").encode(),
    }
    digests = {name: _digest(content) for name, content in files.items()}
    files[DIGESTS] = json.dumps(digests, indent=2).encode()
    folder = pathlib.Path(folder)
    checks.require(not folder.exists(), f"{folder} exists; choose another folder")
    with whole_files.new_folder(folder) as made:
      for name, content in files.items():
        (made / name).write_bytes(content)


def load(folder: str | pathlib.Path) -> Released:
  """Loads a release, in any process.

  Raises:
    ReleaseError: if it is no release, or is not as it was written.
  """
  folder = pathlib.Path(folder)
  files = _verified(folder)
  try:
    values = json.loads(files[RECORD])
    record = schema.build(_Record, values, where=f"{folder / RECORD}: ")
    checks.require(
      record.format == FORMAT, f"{folder} has format {record.format}; this version reads {FORMAT}"
    )
    return _unpacked(record, files[ARRAYS], folder)
  except (ValueError, KeyError) as error:
    if isinstance(error, checks.ArgumentError):
      raise ReleaseError(str(error)) from None
    raise ReleaseError(f"{folder} cannot be read ({error})") from error


@dataclasses.dataclass(frozen=True)
class _Guarantee:
  epsilon: float
  delta: float
  relation: str
  unit: str
  accountant: str
  protected: tuple[str, ...]
  not_protected: tuple[str, ...]
  for_release: bool


@dataclasses.dataclass(frozen=True)
class _Rule:
  max_gap: float
  min_count: int
  disparity: str
  guard: str


@dataclasses.dataclass(frozen=True)
class _Record:
  """`release.json`."""

  format: int
  method: str
  settings: dict[str, Any]
  network: Network
  guarantee: _Guarantee
  class_names: tuple[str, ...]
  group_names: tuple[str, ...]
  shape: tuple[int, ...]
  dtype: str
  row_norm: float | None
  abstention: _Rule | None
  versions: dict[str, str]


def _record(own: Released) -> _Record:
  told, value = own.guarantee, own.guarantee.guarantee
  rule = own.abstention
  return _Record(
    format=FORMAT,
    method=own.method,
    settings=own.settings,
    network=own.network,
    guarantee=_Guarantee(
      value.epsilon,
      value.delta,
      value.relation.value,
      value.unit,
      value.accountant,
      told.protected,
      told.not_protected,
      told.for_release,
    ),
    class_names=own.class_names,
    group_names=own.group_names,
    shape=own.shape,
    dtype=own.dtype,
    row_norm=own.row_norm,
    abstention=None
    if rule is None
    else _Rule(float(rule.max_gap), int(rule.min_count), rule.disparity, rule.guard),
    versions={"jaxfair": jaxfair.__version__, "jax": jax.__version__, "numpy": np.__version__},
  )


def _packed(own: Released) -> bytes:
  """All arrays of a release as the content of a `.npz` file."""
  leaves, _ = jax.tree_util.tree_flatten_with_path(own.params)
  arrays: dict[str, Any] = {
    PARAMS + jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves
  }
  if own.scaler is not None:
    arrays |= {SCALER + k: v for k, v in own.scaler._asdict().items()}
  raw = io.BytesIO()
  np.savez(raw, **arrays)
  return raw.getvalue()


def _unpacked(record: _Record, raw: bytes, folder: pathlib.Path) -> Released:
  with np.load(io.BytesIO(raw), allow_pickle=False) as file:
    arrays = {name: file[name] for name in file.files}
  one = jax.ShapeDtypeStruct(record.shape, jnp.float32 if _scaled(arrays) else record.dtype)
  like = jax.eval_shape(record.network.model.init, jax.random.key(0), one)
  leaves, structure = jax.tree_util.tree_flatten_with_path(like)
  found = []
  for path, leaf in leaves:
    array = arrays[PARAMS + jax.tree_util.keystr(path)]
    # A file holds the bits of a bfloat16 array, but not its type.
    array = array.view(leaf.dtype) if array.dtype.kind == "V" else array
    if array.shape != leaf.shape or array.dtype != leaf.dtype:
      raise ReleaseError(
        f"{folder} has {array.dtype}{array.shape} for "
        f"{jax.tree_util.keystr(path)}, where the network {record.network.name}"
        f" has {leaf.dtype}{leaf.shape}; release the model again"
      )
    found.append(jnp.asarray(array))
  scaler = None
  if _scaled(arrays):
    parts = {name: arrays[SCALER + name] for name in data.Scaler._fields}
    scaler = data.Scaler(**{**parts, "limit": float(parts["limit"])})
  told, rule = record.guarantee, record.abstention
  return Released(
    method=record.method,
    settings=record.settings,
    network=record.network,
    params=jax.tree.unflatten(structure, found),
    guarantee=Protection(
      accounting.PrivacyGuarantee(
        told.epsilon, told.delta, accounting.Relation(told.relation), told.unit, told.accountant
      ),
      told.protected,
      told.not_protected,
      told.for_release,
    ),
    class_names=record.class_names,
    group_names=record.group_names,
    shape=record.shape,
    dtype=record.dtype,
    scaler=scaler,
    row_norm=record.row_norm,
    abstention=CounterRule(**dataclasses.asdict(rule)) if rule else None,
  )


def _scaled(arrays: dict[str, np.ndarray]) -> bool:
  return SCALER + "centre" in arrays


def _digest(content: bytes) -> str:
  return hashlib.sha256(content).hexdigest()


def _verified(folder: pathlib.Path) -> dict[str, bytes]:
  """The files of a release, if each is as it was written."""
  try:
    digests = json.loads((folder / DIGESTS).read_bytes())
    files = {name: (folder / name).read_bytes() for name in (RECORD, ARRAYS, STATEMENT)}
  except (OSError, ValueError):
    raise ReleaseError(
      f"{folder} holds no complete release; pass the folder that Released.save wrote"
    ) from None
  for name, content in files.items():
    if not isinstance(digests, dict) or digests.get(name) != _digest(content):
      raise ReleaseError(
        f"{folder / name} was changed since it was released: its digest is "
        "not the one that was written; get the release from its source again"
      )
  return files
