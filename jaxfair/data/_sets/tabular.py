"""The tabular sets of other publishers."""

import numpy as np

from jaxfair.data import _rules
from jaxfair.data._dataset import Provenance
from jaxfair.data._files import KnownFile
from jaxfair.data._sets.text_form import text_form
from jaxfair.data._spec import Facts, Figure, Spec
from jaxfair.data._tables import Table

CHURN = Spec(
  name="churn",
  source=Provenance("Telco customer churn", "IBM sample data, terms not stated", "IBM"),
  folders=("churn", "telco_churn"),
  forms=(
    text_form(
      KnownFile(
        "WA_Fn-UseC_-Telco-Customer-Churn.csv",
        "88be4b93fbe0cc83421af1c503794c97c342eca914c1576db7c276e61d61358a",
        aliases=("Customer_Churn.csv", "Telco-Customer-Churn.csv"),
      )
    ),
  ),
  labels={"churn": _rules.values("Churn", {"No": "stayed", "Yes": "left"})},
  groups={
    "gender": _rules.values("gender"),
    "senior": _rules.values("SeniorCitizen", {"0": "under 65", "1": "senior"}),
  },
  facts=Facts(
    (5174, 1869),
    {"gender": (3488, 3555), "senior": (5901, 1142)},
    (Figure("rows without TotalCharges", lambda t: float(np.isnan(t["TotalCharges"]).sum()), 11),),
  ),
  drop=("customerID",),
)

STROKE = Spec(
  name="stroke",
  source=Provenance(
    "Stroke prediction",
    "educational use; rights stay with the original authors",
    "fedesoriano, on Kaggle",
    (
      "the one person recorded as Other is left out when gender is the group: "
      "nothing can be said about a group of one",
    ),
    "age",
  ),
  folders=("stroke",),
  forms=(
    text_form(
      KnownFile(
        "healthcare-dataset-stroke-data.csv",
        "a04132178c7281077beea6f3c4ed06e44f7ef60276c5d38df907cbf6e8bcb04d",
      )
    ),
  ),
  labels={"stroke": _rules.values("stroke", {"0": "no stroke", "1": "stroke"})},
  groups={
    "gender": _rules.values("gender", {"Female": "Female", "Male": "Male"}),
    "age": _rules.bins("age", (40, 60)),
    "residence": _rules.values("Residence_type"),
  },
  facts=Facts(
    (4861, 249),
    {"gender": (2994, 2115), "age": (2170, 1564, 1376)},
    (Figure("rows without bmi", lambda t: float(np.isnan(t["bmi"]).sum()), 201),),
  ),
  drop=("id",),
)

COMPAS_FEATURES = (
  "sex",
  "age",
  "race",
  "juv_fel_count",
  "juv_misd_count",
  "juv_other_count",
  "priors_count",
  "c_charge_degree",
  "two_year_recid",
)


def _compas_rows(table: Table) -> Table:
  # ProPublica's own filter: the charge belongs to the screening, the outcome
  # is known, ordinary traffic offences are out.
  kept = (
    (np.abs(table["days_b_screening_arrest"]) <= 30)
    & (table["is_recid"] != -1)
    & (table["c_charge_degree"] != "O")
    & (table["score_text"] != "")
  )
  return {name: table[name][kept] for name in COMPAS_FEATURES}


COMPAS = Spec(
  name="compas",
  source=Provenance(
    "COMPAS two-year recidivism, Broward County 2013-2014",
    "none stated",
    "ProPublica",
    (
      "ProPublica's filter is applied: 6,172 of 7,214 rows",
      "the label is re-arrest, which is not the same as a new crime",
      "the COMPAS score itself is not a feature",
    ),
  ),
  folders=("compas",),
  forms=(
    text_form(
      KnownFile(
        "compas-scores-two-years.csv",
        "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",
      ),
      prepare=_compas_rows,
    ),
  ),
  labels={
    "two_year_recid": _rules.values("two_year_recid", {"0": "no re-arrest", "1": "re-arrest"})
  },
  groups={
    "race": _rules.values("race"),
    "black_white": _rules.values(
      "race", {"African-American": "African-American", "Caucasian": "Caucasian"}
    ),
    "sex": _rules.values("sex"),
    "age": _rules.bins("age", (25, 46)),
  },
  facts=Facts(
    (3363, 2809),
    {"race": (3175, 31, 2103, 509, 11, 343), "black_white": (3175, 2103), "sex": (1175, 4997)},
  ),
)

INSURANCE = Spec(
  name="insurance",
  source=Provenance(
    "Car insurance claims",
    "not stated",
    "sagnik1511, on Kaggle",
    ("its author does not say how it was collected; it may be simulated",),
  ),
  folders=("insurance", "car_insurance"),
  forms=(
    text_form(
      KnownFile(
        "Car_Insurance_Claim.csv",
        "f33708d6e65178b2b18576ba678b82976ff766dadb3b94077dc013f464298971",
      ),
      categorical=("POSTAL_CODE",),
    ),
  ),
  labels={"claim": _rules.values("OUTCOME", {"0": "no claim", "1": "claim"})},
  groups={
    "gender": _rules.values("GENDER"),
    "race": _rules.values("RACE"),
    "age": _rules.values("AGE"),
  },
  facts=Facts(
    (6867, 3133),
    {"gender": (5010, 4990), "race": (9012, 988), "age": (2016, 3063, 2931, 1990)},
    (
      Figure(
        "missing numbers",
        lambda t: float(sum(np.isnan(v).sum() for v in t.values() if v.dtype.kind == "f")),
        1939,
      ),
    ),
  ),
  drop=("ID",),
)

SEGMENTATION = Spec(
  name="segmentation",
  source=Provenance(
    "Customer segmentation",
    "not stated",
    "Analytics Vidhya, on Kaggle",
    (
      "only Train.csv is read: the labels of Test.csv may be a sample "
      "submission rather than the truth",
    ),
  ),
  folders=("segmentation", "customer_segmentation"),
  forms=(
    text_form(
      KnownFile("Train.csv", "4245166ea666055eaeb151aecf2d16c346cdb230749eb064949684c965bf7355")
    ),
  ),
  labels={"segment": _rules.values("Segmentation")},
  groups={
    "gender": _rules.values("Gender"),
    "age": _rules.bins("Age", (30, 50)),
    "married": _rules.values("Ever_Married"),
  },
  facts=Facts((1972, 1858, 1970, 2268), {"gender": (3651, 4417), "married": (140, 3285, 4643)}),
  drop=("ID",),
)

SPECS = (CHURN, STROKE, COMPAS, INSURANCE, SEGMENTATION)
