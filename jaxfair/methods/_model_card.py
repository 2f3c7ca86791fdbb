"""The model card of a release: what is guaranteed and what is not, in plain words.

One record of JSON values; `model_card.md` and `model_card.html` say the same in
sentences. Nothing in it is computed from people: figures measured on test people
are in the evaluation, which is not part of a release.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

from jaxfair.accounting import Relation, _guarantee
from jaxfair.methods import _documents
from jaxfair.methods._documents import Block, Grid, Section, Warned

JSON, MARKDOWN, PAGE = "model_card.json", "model_card.md", "model_card.html"
FILES = (JSON, MARKDOWN, PAGE)
LARGE = 8.0  # an epsilon from which on the promise is weak by itself

IN_WORDS = {
  "dp_sgd": "DP-SGD: in every step of the training each person's influence is limited and "
  "random noise is added to the sum.",
  "dp_sgd_global": "DPSGD-Global: in every step of the training each person's influence is limited "
  "and random noise is added to the sum; the limit is high enough for nearly everybody, so that it "
  "does not favor some groups over others.",
  "dp_sgd_f": "DPSGD-F: in every step of the training each person's influence is limited and "
  "random noise is added to the sum; groups whose influence would be cut more often have a "
  "wider limit, which follows noisy counts.",
  "dp_sgd_parity": "DP-SGD with parity: in every step of the training each person's influence is "
  "limited and random noise is added to the sum; noisy counts of predictions keep the groups' "
  "rates together.",
  "tuned_dp_sgd": "DP-SGD with tuning: a random number of trainings with different settings; in "
  "every step each person's influence is limited and random noise is added to the sum. The model "
  "with the best noisy score is released, and the choice is part of epsilon.",
  "fair_dp_sgd": "FairDP-SGD: in every step of the training each person's influence is limited and "
  "random noise is added to the sum; a penalty keeps groups of public people together.",
  "output_perturbation": "Output perturbation: the model is trained to its optimum, and random "
  "noise is added to its parameters once.",
  "pate": "PATE: many models are trained on separate parts of the people, their noisy vote labels "
  "public people, and the released model learns from those labels alone.",
  "confident_pate": "Confident PATE: many models are trained on separate parts of the people, "
  "their noisy vote labels public people where they agree, and the released model learns from "
  "those labels alone.",
  "soft_pate": "PATE with scores: many models are trained on separate parts of the people and "
  "score public people; random noise is added to the sum of their scores once, and the "
  "released model learns from the noisy scores alone.",
  "fair_soft_pate": "Fair PATE with scores: many models are trained on separate parts of the "
  "people and score public people; random noise is added to the sum of their scores once, and the "
  "released model learns from the noisy scores alone, with a margin that keeps groups of "
  "public people together.",
  "fairpate": "FairPATE: many models are trained on separate parts of the people, their noisy vote "
  "labels public people where they agree and where the label does not push the groups apart, and "
  "the released model learns from those labels alone.",
  "pate_s_pre": "PATE with a filter: many models are trained on separate parts of the people, "
  "their noisy vote labels public people, labels that would push the groups apart are left out, "
  "and the released model learns from the others alone.",
  "pate_s_in": "PATE with a penalty: many models are trained on separate parts of the people, "
  "their noisy vote labels public people, and the released model learns from those labels alone, "
  "with a penalty on differences between groups of public people.",
  "sf_pate_s": "SF-PATE: models trained on separate parts of the people vote, with noise, on "
  "groups; the released model is trained to be fair towards the noisy groups.",
  "sf_pate_t": "SF-PATE: fair models trained on separate parts of the people vote, with noise, on "
  "labels; the released model learns from those labels.",
  "randomized_groups": "Randomized groups: each person's group is replaced by a random one with a "
  "known probability; the model is trained to be fair towards these groups.",
  "private_lagrangian": "Private fair training: random noise is added to every use of the groups "
  "in a training that limits differences between them.",
}
NEIGHBORS = {
  Relation.ADD_OR_REMOVE_ONE: "two sets of people that are equal except that one person is in the "
  "one and not in the other",
  Relation.REPLACE_ONE: "two sets of people of the same size that are equal except for the record "
  "of one person",
  Relation.ZERO_OUT: "two sets of people that are equal except that one record is empty in one of "
  "them",
  Relation.ATTRIBUTE: "two sets of people that are equal except for the group of one person",
}
GUESS = {
  Relation.ADD_OR_REMOVE_ONE: "whether a certain person is among the people of the training",
  Relation.REPLACE_ONE: "which of two records is that of a certain person",
  Relation.ZERO_OUT: "whether the record of a certain person was used",
  Relation.ATTRIBUTE: "which of two groups a certain person belongs to",
}
ALONE = (
  "Each line covers its own releases. Their neighboring relations differ, so the epsilons cannot "
  "be added up."
)
LIMITS = (
  "The model is for people like those it was trained on; it was not tested on others.",
  "Protection is for one row of the table. A person with several rows in it is protected less.",
  "The guarantee covers the people in the training data. It does not cover people whose "
  "records are given to the model for a prediction.",
  "The checksums of this folder detect damage and accidental edits. They are not a signature.",
)


def right_guesses(epsilon: float, delta: float) -> float:
  """The largest share of right guesses between two neighbors, each as likely as the other.

  (e^epsilon + delta) / (e^epsilon + 1), attained by the optimal test of a mechanism that is
  exactly (epsilon, delta)-DP: its type I and II errors satisfy a + b >= 2 (1 - delta) /
  (1 + e^epsilon) (Kairouz, Oh and Viswanath 2015).
  """
  return min(1.0, (1 + delta * math.exp(-epsilon)) / (1 + math.exp(-epsilon)))


def record(release: Mapping[str, Any], *, planned: bool) -> dict[str, Any]:
  """The card as JSON values.

  Args:
    release: the values of release.json.
    planned: whether the shares of the classes that groups are answered were planned.
  """
  promised, rule = release["guarantee"], release["abstention"]
  epsilon, delta = promised["epsilon"], promised["delta"]
  return {
    "title": f"Model card: {release['data_name']}, {release['method']}",
    "for_release": promised["for_release"],
    "released_on": release["released_on"],
    "data": release["data_name"],
    "predicts": [*release["class_names"]],
    "privacy": {
      "protected": [*promised["protected"]],
      "not_protected": [*promised["not_protected"]],
      "estimated_with_noise": _bought(release["encoder"]),
      "unit": promised["unit"],
      "relation": promised["relation"],
      "neighbors": NEIGHBORS[Relation(promised["relation"])],
      "epsilon": _guarantee.round_up(epsilon),
      "delta": _guarantee.round_up(delta),
      "accountant": promised["accountant"],
      "most_right_guesses": _up(right_guesses(epsilon, delta), 3),
      "at_votes": promised["at_votes"],
      "all_spending": [*release["spending"]],
    },
    "fairness": rule and {"groups": [*release["group_names"]], **rule, "planned": planned},
    "intended_use": release["intended_use"],
    "limits": [*LIMITS],
    "method": release["method"],
    "method_in_words": IN_WORDS.get(release["method"], f"The method {release['method']}."),
    "network": release["network"]["name"],
    "settings": release["settings"],
    "groups": [*release["group_names"]],
  }


def files(release: Mapping[str, Any], *, planned: bool) -> dict[str, bytes]:
  """The three files of the card by name; see `record`."""
  card = record(release, planned=planned)
  parts = card["title"], _lead(card), _sections(card)
  return {
    JSON: json.dumps(card, indent=2).encode(),
    MARKDOWN: _documents.markdown(*parts).encode(),
    PAGE: _documents.page(*parts).encode(),
  }


def _bought(encoder: Mapping[str, Any] | None) -> list[str]:
  """Columns whose scaling or categories were bought, within epsilon."""
  columns = [] if encoder is None else encoder["columns"]
  return [column["name"] for column in columns if column["origin"] == "bought"]


def _lead(card: dict[str, Any]) -> list[Block]:
  privacy = card["privacy"]
  blocks: list[Block] = []
  if not card["for_release"]:
    blocks.append(
      Warned("NOT FOR RELEASE: the noise of this model came from a fixed seed and can be undone.")
    )
  blocks.append(
    f"A model of the data set {card['data']} that predicts one of: "
    f"{', '.join(card['predicts'])}. It protects {'; '.join(privacy['protected'])}, with epsilon "
    f"{privacy['epsilon']:g} and delta {privacy['delta']:g} for {privacy['unit']}."
  )
  blocks.append(card["method_in_words"])
  return blocks


def _sections(card: dict[str, Any]) -> list[Section]:
  return [
    Section("What is protected", _protected(card["privacy"])),
    Section("What epsilon and delta mean", _meaning(card["privacy"])),
    *_of_votes(card),
    Section(
      "What is not covered",
      ("The guarantee above does not cover:", [*card["privacy"]["not_protected"]]),
    ),
    Section("All spending on this data set", _spending(card)),
    Section("Fairness between groups", _fairness(card)),
    Section(
      "How good it is",
      (
        "Figures measured on test people are not in this folder: they are computed without "
        "noise, and the guarantee does not cover them. The owner of the data has them in the "
        "folder "
        "evaluation beside this one, with sizes and intervals for every group, and with the "
        "majority class and a model without privacy to compare with. Figures with noise that "
        "may be published, if any, are in the folder figures beside this one; they say what they "
        "cost, which adds to the spending above.",
      ),
    ),
    Section(
      "Intended use and limits",
      (
        card["intended_use"] or "No intended use was stated when the model was released.",
        card["limits"],
      ),
    ),
    Section("Details", (_details(card),)),
  ]


def _protected(privacy: dict[str, Any]) -> tuple[Block, ...]:
  bought = ", ".join(privacy["estimated_with_noise"])
  prepared = (
    f"The scaling of the features, and which categories there are, were estimated with noise from "
    f"the same people for these columns: {bought}. The epsilon above includes it, and the ledger "
    "counts it as a release of its own."
  )
  return (
    [*privacy["protected"]],
    *((prepared,) if bought else ()),
    f"The unit of protection is {privacy['unit']}. What is compared are {privacy['neighbors']} "
    f"({privacy['relation']} neighbors): whatever can be learned from the release can be learned "
    "nearly as well from the other set.",
  )


def _meaning(privacy: dict[str, Any]) -> tuple[Block, ...]:
  epsilon, delta = privacy["epsilon"], privacy["delta"]
  guess = GUESS[Relation(privacy["relation"])]
  share = 100 * privacy["most_right_guesses"]
  blocks: list[Block] = [
    f"Suppose that somebody knows everything about everybody else, how the model was made, and "
    f"the model itself, and guesses {guess}. Tossing a coin is right 50 times in 100. With this "
    f"release no guess is right more than {share:.4g} times in 100."
  ]
  if epsilon < 20:
    blocks.append(
      f"In terms of odds: whatever the odds were before, the release multiplies them by "
      f"{_up(math.exp(epsilon), 2):g} (e to the power of epsilon) at most."
    )
  if delta > 0:
    blocks.append(
      f"Delta allows for a remainder: the bound on the odds may fail with a probability of up to "
      f"{delta:g}, that is 1 in {math.floor((1 + 1e-9) / delta):,}. The 100 tries above include it."
    )
  if epsilon > LARGE:
    blocks.append(
      Warned(
        f"An epsilon of {epsilon:g} is a weak guarantee: such a bound excludes hardly any "
        "guess. Use a smaller epsilon where people can be harmed."
      )
    )
  return tuple(blocks)


def _of_votes(card: dict[str, Any]) -> list[Section]:
  """The epsilons of a method whose teachers vote."""
  privacy, asked = card["privacy"], "sanitized_epsilon" in card["settings"]
  own = privacy["at_votes"]
  if not asked:
    return []
  rows = [
    ("for any votes", f"{privacy['epsilon']:g}", "every set of people; it is what was charged"),
    (
      "sanitized",
      f"{_guarantee.round_up(own['epsilon']):g}" if own else "none was bought",
      "the votes that were cast; a figure with noise, whose price is in the epsilon above",
    ),
    ("without noise", "not published", "the votes that were cast; the owner of the data has it"),
  ]
  blocks: list[Block] = [Grid(("epsilon", "value", "holds for"), tuple(rows))]
  if own:
    blocks.append(
      "The sanitized epsilon bounds how much likelier this release is with these people than with "
      f"any neighboring set, not the other way round; with probability {1 - own['confidence']:.2g} "
      "its noise makes it too small. It has the delta of the release and replaces nothing: other "
      "releases are added to the epsilon for any votes."
    )
  return [Section("Epsilon, by what it holds for", tuple(blocks))]


def _spending(card: dict[str, Any]) -> tuple[Block, ...]:
  told = card["privacy"]["all_spending"]
  if not told:
    return (
      "This release is not recorded in a ledger of its data set. Other releases about the same "
      "people add to the epsilon above.",
    )
  return (
    "Several releases about the same people add up for anyone who sees them. When this model was "
    f"released, the ledger of {card['data']} held, this release included:",
    [*told],
    *((ALONE,) if len(told) > 1 else ()),
    "Later releases, and releases that were not recorded, are not included.",
  )


def _fairness(card: dict[str, Any]) -> tuple[Block, ...]:
  rule, groups = card["fairness"], ", ".join(card["groups"])
  if rule is None:
    return (f"The model shows all its predictions and keeps no margin between groups ({groups}).",)
  planned = (
    "The shares of the classes that the answers to every group aim at were planned on public "
    "people, so that most predictions can be shown within the margin; groups are not answered "
    "equally often. The plan reads no private person, and the margin holds whether or not the plan "
    "suits those who come.",
  )
  return (
    f"The model abstains from a prediction where showing it would push the shares of a class "
    f"apart by {rule['max_gap']:g} or more between groups ({groups}).",
    f"A group is judged once it has {rule['min_count']} answers; until then the margin does "
    "not hold for it. The margin holds for predictions that pass through the rule, with counters "
    "that are kept from one batch to the next (jaxfair predict --state).",
    *(planned if rule["planned"] else ()),
  )


def _details(card: dict[str, Any]) -> Grid:
  settings = ", ".join(f"{name} {value}" for name, value in card["settings"].items())
  rows = [
    ("released on", card["released_on"] or "not said"),
    ("method", card["method"]),
    ("network", card["network"]),
    ("classes", ", ".join(card["predicts"])),
    ("groups", ", ".join(card["groups"])),
    ("accountant", card["privacy"]["accountant"]),
    ("settings", settings or "none"),
  ]
  return Grid(("what", "value"), tuple(rows))


def _up(value: float, decimals: int) -> float:
  """Rounded up: a promise is never overstated."""
  scale = 10**decimals
  return math.ceil(value * scale) / scale
