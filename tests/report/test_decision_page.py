"""The page for people who decide."""

from jaxfair.report._decision_page import Brief, Listing, write_brief


def test_the_page_says_all_and_loads_nothing(tmp_path):
  rows = [["A & B", "<b>5 EUR</b>"]]
  brief = Brief(
    "Who <gains>",
    "Summary.",
    ["First.", "Second.", "Third."],
    [
      Listing("Losers", "Clear ones.", ["place", "change"], rows),
      Listing("None", "No.", ["p"], []),
    ],
    "Use it.",
    "jaxfair decide --rule 'a b.py:f'",
    Listing("Ways", "All.", ["way", "lost"], [["tempered", "0 EUR"]]),
    {"tempered": "Lowered."},
    ["Own eyes."],
  )
  write_brief(brief, tmp_path / "page.html")
  page = (tmp_path / "page.html").read_text("utf-8")
  told = [
    "Who &lt;gains&gt;",
    "First.",
    "Third.",
    "A &amp; B",
    "&lt;b&gt;5 EUR",
    "Use it.",
    "Own eyes.",
  ]
  places = [page.index(word) for word in told]
  assert places == sorted(places)
  assert 'data-head="change"' in page  # on a phone each cell carries its head
  assert page.count("<table") == 2  # an empty list is a sentence
  assert "jaxfair decide</span> <span>--rule &#x27;a b.py:f&#x27;</span>" in page
  assert "http" not in page
  assert "<script" not in page
