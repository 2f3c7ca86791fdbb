"""Noise of released answers: the same for the same votes, and for no others."""

import numpy as np
import pytest

from jaxfair.pate import _answer_noise
from jaxfair.pate._answer_noise import NoiseSecret
from jaxfair.privacy._exact_coins import keyed

VOTES = np.array([[70, 30], [50, 50]])


def bits(drawn):
  return drawn.source(64)


def test_the_same_stretch_has_the_same_noise():
  secret = NoiseSecret(b"x" * 32)
  one, two = (secret.draw(["answers", 0, 2], VOTES) for _ in range(2))
  assert one.tag == two.tag
  assert bits(one) == bits(two)
  assert bits(one) == bits(two)  # and the next ones
  narrow = VOTES.astype(np.int16)[::1]
  assert secret.draw(["answers", 0, 2], narrow).tag == one.tag


@pytest.mark.parametrize(
  ("named", "votes"),
  [
    (["tests", 0, 2], VOTES),
    (["answers", 1, 2], VOTES),
    (["answers", 0, 3], VOTES),
    (["answers", 0, 2], VOTES + 1),
    (["answers", 0, 2], VOTES[::-1]),
    (["answers", 0, 2], VOTES[:1]),
    (["answers", 0, 2], VOTES.reshape(1, 4)),
    (["answers", 0, 2], np.asfortranarray(VOTES.T)),
  ],
)
def test_anything_else_has_other_noise(named, votes):
  secret = NoiseSecret(b"x" * 32)
  one, two = secret.draw(["answers", 0, 2], VOTES), secret.draw(named, votes)
  assert one.tag != two.tag
  assert bits(one) != bits(two)


def test_neither_tag_nor_fingerprint_is_the_noise():
  secret = NoiseSecret(b"x" * 32)
  drawn = secret.draw([], VOTES)
  told = {drawn.tag, secret.fingerprint()}
  assert len(told) == 2
  assert not any(bits(drawn).hex().startswith(one) for one in told)
  other = NoiseSecret(b"y" * 32)
  assert secret.fingerprint() != other.fingerprint()
  assert bits(other.draw([], VOTES)) != bits(drawn)
  assert NoiseSecret.of_seed(1).fingerprint() != other.fingerprint()


def test_the_tag_is_no_part_of_the_noise_s_key(monkeypatch):
  """Tags are in ledgers, which others read."""
  keys = []
  monkeypatch.setattr(_answer_noise, "keyed", keys.append)
  drawn = NoiseSecret(b"x" * 32).draw([], VOTES)
  assert len(keys) == 1
  assert drawn.tag not in keys[0].hex()


def test_bits_are_uniform():
  """Six standard deviations of 8 million coins."""
  found = np.unpackbits(np.frombuffer(keyed(b"x" * 32)(10**6), np.uint8))
  assert abs(found.mean() - 0.5) < 6 * 0.5 / np.sqrt(found.size)
  source = keyed(b"x" * 32)
  assert source(10**5) != source(10**5)
