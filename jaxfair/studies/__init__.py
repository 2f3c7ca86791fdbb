"""The papers' experiments and claims: one module per experiment, declared with `experiments`.

Studies train and measure by calling the packages above; they never draw.
"""

# The name in a config is the module in this package.
NAMES = (
  "methods",
  "audit",
  "pate.comparison",
  "pate.penalty",
  "pate.teachers",
  "pate.people",
  "pate.norms",
  "pate.bound",
  "pate.soft",
  "pate.frontier",
  "dp_erm.output",
  "dp_erm.normalize",
  "dp_erm.clipping",
  "dp_erm.gradients",
  "dp_erm.curvature",
  "dp_erm.inputs",
  "dp_erm.terms",
  "dp_erm.sizes",
  "dp_erm.mitigation",
  "decisions.allotments",
  "decisions.rules",
  "disclosure",
  "sf_pate.tradeoff",
  "sf_pate.votes",
  "sf_pate.times",
  "pruning.rates",
  "pruning.sizes",
  "pruning.fair",
  "robustness.gaussians",
  "robustness.price",
  "robustness.joint",
  "fairpate",
  "fairpate.queries",
  "fairpate.notions",
  "fairpate.times",
)

__all__ = ["NAMES"]
