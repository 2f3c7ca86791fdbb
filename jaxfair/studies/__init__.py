"""The papers' experiments and claims, declared with `experiments`: one module per kind of table.

Studies train and measure by calling the packages above; they never draw.
"""

NAMES = (
  "methods",
  "audit",
  "remedies",
  "pate.comparison",
  "pate.penalty",
  "pate.teachers",
  "pate.people",
  "pate.norms",
  "pate.bound",
  "pate.soft",
  "pate.refusals",
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
  "dp_erm.hyperparameters",
  "dp_erm.dual",
  "dp_erm.slopes",
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
  "robustness.private",
  "fairpate",
  "fairpate.queries",
  "fairpate.refusals",
  "fairpate.notions",
  "fairpate.times",
)
# A study is the `STUDY` of the module of its name; those that share a table share a module.
MODULES = {
  "pate.teachers": "pate.penalty",
  "pate.norms": "pate.penalty",
  "dp_erm.gradients": "dp_erm.persons",
  "dp_erm.curvature": "dp_erm.persons",
  "dp_erm.normalize": "dp_erm.output",
}

__all__ = ["NAMES"]
