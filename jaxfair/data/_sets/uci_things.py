"""Other tables from the UCI repository: wines, shellfish, heartbeats."""

import numpy as np

from jaxfair.data import _rules, _tables
from jaxfair.data._dataset import Provenance
from jaxfair.data._files import Files, KnownFile
from jaxfair.data._reading import parse
from jaxfair.data._sets.text_form import text_form
from jaxfair.data._sets.uci_people import LICENSE, ORIGIN
from jaxfair.data._spec import Facts, Figure, Form, Raw, Spec

RED = KnownFile(
  "winequality-red.csv", "4a402cf041b025d4566d954c3b9ba8635a3a8a01e039005d97d6a710278cf05e"
)
WHITE = KnownFile(
  "winequality-white.csv", "76c3f809815c17c07212622f776311faeb31e87610d52c26d87d6e361b169836"
)


def _wine(found: Files) -> Raw:
  parts = []
  for color, file in (("red", RED), ("white", WHITE)):
    part = parse(found.text(file.name), separator=";")
    parts.append({**part, "color": np.full(_tables.size(part), color)})
  return Raw(_tables.concatenate(parts))


WINE = Spec(
  name="wine",
  source=Provenance("Wine quality, Vinho Verde", LICENSE, ORIGIN, sorted_by="color"),
  folders=("wine", "wine_quality"),
  forms=(Form((RED, WHITE), _wine),),
  labels={"quality": _rules.above("quality", 5, ("poor", "good"))},
  groups={"color": _rules.values("color")},
  facts=Facts((2384, 4113), {"color": (1599, 4898)}),
)

ABALONE = Spec(
  name="abalone",
  source=Provenance("Abalone", LICENSE, ORIGIN),
  folders=("abalone",),
  forms=(
    text_form(
      KnownFile(
        "abalone.data",
        "de37cdcdcaaa50c309d514f248f7c2302a5f1f88c168905eba23fe2fbc78449f",
        aliases=("abalone.data.txt",),
      ),
      names=(
        "sex",
        "length",
        "diameter",
        "height",
        "whole weight",
        "shucked weight",
        "viscera weight",
        "shell weight",
        "rings",
      ),
    ),
  ),
  labels={"rings": _rules.above("rings")},
  groups={
    "sex": _rules.values("sex", {"F": "female", "M": "male", "I": "infant"}),
    # Chapter 3 of the thesis compares two groups: infants are left out.
    "grown_sex": _rules.values("sex", {"F": "female", "M": "male"}),
  },
  facts=Facts(
    (2096, 2081),
    {"sex": (1307, 1528, 1342), "grown_sex": (1307, 1528)},
    (Figure("median rings", lambda t: float(np.median(t["rings"])), 9.0),),
  ),
)

FETAL_COLUMNS = {
  "LB": "baseline value",
  "AC.1": "accelerations",
  "FM.1": "fetal_movement",
  "UC.1": "uterine_contractions",
  "DL.1": "light_decelerations",
  "DS.1": "severe_decelerations",
  "DP.1": "prolongued_decelerations",
  "ASTV": "abnormal_short_term_variability",
  "MSTV": "mean_value_of_short_term_variability",
  "ALTV": "percentage_of_time_with_abnormal_long_term_variability",
  "MLTV": "mean_value_of_long_term_variability",
  "Width": "histogram_width",
  "Min": "histogram_min",
  "Max": "histogram_max",
  "Nmax": "histogram_number_of_peaks",
  "Nzeros": "histogram_number_of_zeroes",
  "Mode": "histogram_mode",
  "Mean": "histogram_mean",
  "Median": "histogram_median",
  "Variance": "histogram_variance",
  "Tendency": "histogram_tendency",
  "NSP": "fetal_health",
}

FETAL = Spec(
  name="fetal",
  source=Provenance(
    "Cardiotocography (fetal health)",
    LICENSE,
    ORIGIN,
    ("no demographic group is recorded: everyone is one group by default",),
    "recording",
  ),
  folders=("fetal", "fetal_health"),
  forms=(
    text_form(
      KnownFile(
        "fetal_health.csv", "90bd62b95020ffa466f01a2942a79cf6b8b04cc5ac680144d705002d893f6622"
      )
    ),
    text_form(
      KnownFile(
        "ctg_uci.csv",
        "d572921035bfbaca73b352e156f9f783acc54584a3a19e285dd15a68dee4db56",
        aliases=("ctg.csv",),
      ),
      prepare=lambda table: {name: table[code] for code, name in FETAL_COLUMNS.items()},
    ),
  ),
  labels={
    "health": _rules.values("fetal_health", {"1": "normal", "2": "suspect", "3": "pathological"})
  },
  groups={"all": _rules.everyone()},
  facts=Facts((1655, 295, 176), {"all": (2126,)}),
)

SPECS = (WINE, ABALONE, FETAL)
