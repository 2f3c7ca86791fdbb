"""What is drawn of wrong decisions, ratios, truth values and proxies."""

from jaxfair.studies.protocol import Figure

FIGURES = (
  Figure(
    "errors", "Wrong decisions by distance to the thresholds", x="distance",
    y="error", color="truth", facet="places", mark="point", log_x=True,
    x_title="distance to the nearest threshold / noise scale",
    y_title="chance of a wrong decision", where={"row": "place"},
    caption="Each point a place and epsilon. Colours: whether there are many "
    "speakers, and whether they lack schooling (Fig. 2.3).",
  ),
  Figure(
    "citizens", "Wrong decisions by size", x="citizens", y="error",
    color="truth", facet="places", mark="point", log_x=True,
    y_title="chance of a wrong decision", where={"row": "place"},
    caption="Small places lose most, where they are near a threshold.",
  ),
  Figure(
    "ratios", "Bias of ratios that are nearly the same", x="county",
    y="exact_bias", facet="epsilon", log_y=True,
    y_title="bias of limited English / citizens", where={"row": "ratio"},
    caption="The smaller the counts, the larger the bias (Fig. 2.4 left).",
  ),
  Figure(
    "spread", "Spread of ratios that are nearly the same", x="county",
    y="ratio_spread", facet="epsilon", log_y=True,
    y_title="standard deviation",
    where={"row": "ratio"}, caption="Fig. 2.4, middle.",
  ),
  Figure(
    "truth", "Who errs, by truth values", x="truth", y="group_error",
    color="operator", facet="epsilon", y_title="chance of a wrong decision",
    where={"row": "truth", "places": "synthetic"},
    caption="First many speakers, second lack of schooling (Fig. 2.9).",
  ),
  Figure(
    "proxies", "Alpha within bins", x="bin", y="bin_alpha", color="method",
    facet="epsilon", mark="line", y_title="alpha within the bin",
    x_title="bin by speakers with limited English",
    where={"row": "bin", "places": "synthetic"},
    caption="Against the rule on true counts (Fig. 2.10), made-up counties.",
  ),
  Figure(
    "own_alpha", "Alpha within bins, by noise alone", x="bin", y="own_alpha",
    color="method", facet="epsilon", mark="line",
    x_title="bin by speakers with limited English",
    y_title="alpha within the bin",
    where={"row": "bin", "places": "synthetic"},
    caption="Each method against itself on true counts: what it decides "
    "wrongly without noise does not count.",
  ),
  Figure(
    "proxy_error", "and their errors", x="bin", y="bin_error",
    color="method", facet="epsilon", mark="line",
    x_title="bin by speakers with limited English",
    y_title="mean chance of a wrong decision",
    where={"row": "bin", "places": "synthetic"},
    caption="Against the rule on true counts.",
  ),
)  # fmt: skip
