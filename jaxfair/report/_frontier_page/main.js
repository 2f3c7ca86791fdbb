// Controls, the choice, the table; everything is drawn again on a change.
const $ = id => document.getElementById(id);
const make = (tag, words, parent, more = {}) => {
  const e = document.createElement(tag);
  if (words !== null) e.textContent = words;
  Object.assign(e, more);
  parent.append(e);
  return e;
};

// Words of a command line, broken between them and not at their hyphens.
function spread(words, box) {
  words.forEach((word, i) => {
    if (i) box.append(" ");
    make("span", word, box, { className: "word" });
  });
  return box;
}

function looks() {
  const left = P.filter(keepsAll);
  return { kept: new Set(left.map(p => p.i)), left,
    chosen: best(left, state.by),
    looked: state.looked === null ? null : P[state.looked] };
}

// Charts are drawn once a frame, however often a slider moves in between.
const due = new Set();
function soon(...charts) {
  if (!due.size) {
    requestAnimationFrame(() => {
      const look = looks();
      for (const draw of due) draw(look);
      due.clear();
    });
  }
  charts.forEach(draw => due.add(draw));
}

function buildLimits() {
  O.forEach((o, j) => {
    const box = make("div", null, $("limits"), { className: "limit" });
    const row = make("div", null, box);
    make("label", `${o.words} ${sign[j] > 0 ? "at most" : "at least"}`, row,
      { htmlFor: `limit-${o.name}` });
    make("output", "", row, { id: `told-${o.name}` });
    const slider = make("input", null, box, { type: "range", min: 0,
      id: `limit-${o.name}`, step: 1 });
    slider.max = Math.max(STOPS[j].length - 1, 0);
    slider.disabled = STOPS[j].length < 2;  // all settings are alike in it
    slider.addEventListener("input", () => {
      const at = Number(slider.value);
      state.limits[j] = at === loosest(j) ? null : STOPS[j][at];
      show();
    });
  });
  O.forEach((o, j) => make("option", o.words, $("by"), { value: j }));
  $("strict").disabled = !interval;
}
function showLimits() {
  O.forEach((o, j) => {
    const limit = state.limits[j], slider = $(`limit-${o.name}`);
    const at = limit === null ? loosest(j) : STOPS[j].reduce((m, x, k) =>
      Math.abs(x - limit) < Math.abs(STOPS[j][m] - limit) ? k : m, 0);
    slider.value = at;
    const words = limit !== null ? text(limit) :
      slider.disabled && STOPS[j].length ? `all ${text(STOPS[j][0])}` : "any";
    slider.setAttribute("aria-valuetext", words);
    $(`told-${o.name}`).textContent = words;
    $(`told-${o.name}`).className = limit === null ? "any" : "";
  });
  $("strict").checked = state.strict;
  $("by").value = state.by;
}

function card(box, heading, p) {
  make("h2", heading, box);
  make("div", named(p), box, { className: "name" });
  const list = make("dl", null, box, { className: "figures" });
  O.forEach((o, j) => {
    make("dt", o.words, list);
    make("dd", told(p, j), list);
  });
  if (interval) {
    make("dt", "Pareto-optimal", list);
    make("dd", `${sure(p)} of resamples`, list);
  }
  const constant = D.majority !== null && p.v[HEIGHT] <= D.majority ?
    `no more accurate than the majority class (${text(D.majority)})` : "";
  if (p.why || constant) {
    make("p", `Useless: it ${p.why || `is ${constant}`}. Its small gap is not fairness.`, box,
      { className: "useless" });
  }
  const over = make("div", null, box, { className: "head soft" });
  make("span", D.release ? "To train and release it:" : "To train it:", over);
  const copy = make("button", "Copy", over, { type: "button", className: "copy" });
  const line = spread(command(p), make("pre", null, box));
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(command(p).join(" "));
      copy.textContent = "Copied";
    } catch {  // a page from a file may not be allowed to
      getSelection().selectAllChildren(line);
      copy.textContent = "Selected: press Ctrl-C";
    }
  });
}
function showChoice(look) {
  const box = $("choice");
  box.replaceChildren();
  if (look.chosen !== null) {
    const many = look.left.length;
    card(box, `Best of ${many} setting${many === 1 ? "" : "s"} left`,
      look.chosen);
    box.querySelector("pre").id = "command";
    box.dataset.i = look.chosen.i;
    return;
  }
  delete box.dataset.i;
  make("h2", "No setting satisfies these limits", box);
  const ways = nearest().map(([j, x]) =>
    `${O[j].words} ${sign[j] > 0 ? "at most" : "at least"} ${text(x)}`);
  make("p", ways.length ?
    `Loosen one of them: ${ways.join(", or ")}.` :
    "Loosening one limit is not enough; loosen two of them.", box);
}
function showLooked(look) {
  const box = $("looked");
  box.replaceChildren();
  box.hidden = look.looked === null || look.looked === look.chosen;
  if (box.hidden) return;
  card(box, "Selected setting", look.looked);
  const broken = O.filter((_, j) => !keeps(look.looked, j)).map(o => o.words);
  if (broken.length) make("p", `Violates the limit on ${broken.join(", ")}.`, box);
}

const MOST = 200;
const columns = [...(D.methods.length > 1 ? ["method"] : []), ...D.keys];
function heads(table, ...last) {
  table.replaceChildren();
  const head = make("tr", null, make("thead", null, table));
  make("th", "", head, { className: "act" });
  for (const name of [...columns, ...O.map(o => o.words), ...last]) {
    make("th", name, head);
  }
  return make("tbody", null, table);
}
// A setting's line up to its objectives; intervals stand below the values.
function rowOf(p, body, kind) {
  const row = make("tr", null, body, { className: p.why ? `${kind} flagged` : kind });
  const button = make("button", "Look", make("td", null, row, { className: "act" }),
    { type: "button" });
  button.setAttribute("aria-label", `Look at ${named(p)}`);
  button.dataset.look = p.i;
  const table = body.parentElement;
  button.addEventListener("click", () => {
    state.looked = p.i;
    show();  // makes the table anew: who came by keyboard stays where they were
    table.querySelector(`[data-look="${p.i}"]`)?.focus({ preventScroll: true });
  });
  if (D.methods.length > 1) make("td", D.methods[p.m], row);
  for (const value of p.s) make("td", value === "" ? "-" : value, row);
  O.forEach((_, j) => {
    const [value, ...bounds] = told(p, j).split(" ");
    const cell = make("td", `${value} `, row);
    if (bounds.length) make("small", bounds.join(" "), cell);
  });
  return row;
}
function showTable(look) {
  const every = $("all").checked;
  const shown = (every ? P : P.filter(p => p.on && look.kept.has(p.i)))
    .slice().sort((a, b) => sign[state.by] * (a.v[state.by] - b.v[state.by]));
  const on = P.filter(p => p.on).length;
  $("counted").textContent = `${P.length} settings, ${on} of them Pareto-optimal` +
    `; ${look.left.length} satisfy the limits.` + (shown.length > MOST ?
      ` The first ${MOST} of ${shown.length} are listed.` : "");
  const last = interval ? ["Pareto-optimal"] : [];
  const body = heads($("table"), ...last);
  if (D.majority !== null) {
    const row = make("tr", null, body, { className: "baseline" });
    make("td", "", row, { className: "act" });
    make("td", "majority class", row, { colSpan: Math.max(1, columns.length) });
    const known = { epsilon: 0, gap: 0, accuracy: D.majority, coverage: 1 };
    for (const o of O) make("td", o.name in known ? text(known[o.name]) : "-", row);
    if (interval) make("td", "-", row);
  }
  for (const p of shown.slice(0, MOST)) {
    const kind = p === look.chosen ? "chosen" :
      look.kept.has(p.i) ? "" : "broken";
    const row = rowOf(p, body, kind);
    if (interval) make("td", sure(p), row);
    const below = make("tr", null, body, { className: `sets ${kind}` });
    make("td", "", below, { className: "act" });
    spread(setting(p), make("td", null, below,
      { colSpan: columns.length + O.length + last.length }));
  }
}
// Table 1 of the FairPATE paper, for the limits as they are.
function showEach(look) {
  $("each-card").hidden = D.methods.length < 2;
  const body = heads($("each"));
  D.methods.forEach((name, m) => {
    const top = best(look.left.filter(p => p.m === m), state.by);
    if (top !== null) {
      rowOf(top, body, top === look.chosen ? "chosen" : "");
      return;
    }
    const row = make("tr", null, body, { className: "broken" });
    make("td", "", row, { className: "act" });
    make("td", name, row);
    make("td", "no setting satisfies the limits", row,
      { colSpan: columns.length - 1 + O.length });
  });
}

function showLegend() {
  const box = $("legend");
  if (COLOR >= 0 && TINT[0] < TINT[1]) {
    const bar = make("span", O[COLOR].words, box);
    make("span", ` ${text(TINT[0])}`, bar);
    make("span", null, bar, { className: "bar" }).style.background =
      `linear-gradient(90deg, ${[0, 0.25, 0.5, 0.75, 1].map(shade).join(",")})`;
    make("span", text(TINT[1]), bar);
  }
  D.methods.forEach((name, m) => {
    const item = make("span", null, box);
    item.innerHTML = `<svg viewBox="0 0 14 14">` +
      `${SHAPES[m % SHAPES.length](7, 7, 4.5)} fill="var(--mid)"/></svg> `;
    item.append(name);
  });
  make("span", "large: Pareto-optimal (no other setting is better in every objective)", box);
  make("span", "hollow: breaks a limit", box);
}

function showTip(event) {
  const at = event.target.closest?.(".mark"), tip = $("tip");
  tip.hidden = !at;
  if (!at) return;
  const p = P[Number(at.dataset.i)];
  tip.textContent = [named(p), ...O.map((o, j) => `${o.words}: ${told(p, j)}`),
    ...(interval ? [`Pareto-optimal: ${sure(p)} of resamples`] : []),
    setting(p).join(" ")].join("\n");
  const wide = document.documentElement.clientWidth;
  tip.style.left = `${Math.max(4, Math.min(event.pageX + 14, wide - 310))}px`;
  tip.style.top = `${event.pageY + 16}px`;
}

// The limits are part of the address, so that a link keeps them.
function remember() {
  const parts = O.map((o, j) => state.limits[j] === null ? null :
    `${o.name}=${state.limits[j]}`).filter(x => x !== null);
  if (state.strict) parts.push("whole=1");
  if (state.by !== HEIGHT) parts.push(`by=${O[state.by].name}`);
  try {
    history.replaceState(null, "", `#${parts.join("&")}`);
  } catch { /* some browsers forbid it for files */ }
}
function recall() {
  for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
    const j = O.findIndex(o => o.name === name);
    if (j >= 0 && isFinite(Number(value))) state.limits[j] = Number(value);
    if (name === "whole") state.strict = interval;
    if (name === "by") {
      state.by = Math.max(0, O.findIndex(o => o.name === value));
    }
  }
}

// Table 1 of the FairPATE paper: a hard limit on what is wished for.
const WISHES = { private: "epsilon", fair: "gap", accurate: null, none: null };
function wish(name) {
  state.limits = O.map(() => null);
  state.by = HEIGHT;
  const j = O.findIndex(o => o.name === WISHES[name]);
  if (j >= 0) {
    state.limits[j] = outward(Math.min(...P.map(p => worst(p, j))), j);
  }
  show();
}

function show() {
  const look = looks();
  showLimits();
  showChoice(look);
  showLooked(look);
  showTable(look);
  showEach(look);
  soon(drawSpace, drawPairs, drawParallel);
  remember();
}

recall();
buildLimits();
showLegend();
listenToTurns();
$("strict").addEventListener("change", () => {
  state.strict = $("strict").checked;
  show();
});
$("by").addEventListener("change", () => { state.by = Number($("by").value); show(); });
$("all").addEventListener("change", () => showTable(looks()));
for (const button of document.querySelectorAll("[data-wish]")) {
  button.addEventListener("click", () => wish(button.dataset.wish));
}
document.addEventListener("pointerover", showTip);
document.addEventListener("click", event => {
  const at = event.target.closest?.(".mark");
  if (at) { state.looked = Number(at.dataset.i); show(); }
});
window.addEventListener("resize", () => soon(drawSpace, drawParallel));
$("beaten").checked = P.length <= 300;
$("beaten").addEventListener("change",
  () => soon(drawSpace, drawPairs, drawParallel));
show();
