// Flat charts: pairs of objectives, and all of them side by side.
const VIRIDIS = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98],
  [253, 231, 37]];
const FAINT = "var(--faint)", CHOSEN = "var(--chosen)";
// One value alone is given room on both sides, within what the objective can be.
const span = (low, high, j) => high > low ? [low, high] :
  [Math.max(low - 0.5, O[j].least ?? -Infinity), Math.min(high + 0.5, O[j].most ?? Infinity)];

function shade(x) {
  const at = Math.max(0, Math.min(1, x)) * (VIRIDIS.length - 1);
  const i = Math.min(Math.floor(at), VIRIDIS.length - 2), t = at - i;
  const mix = VIRIDIS[i].map((a, k) =>
    Math.round(a + t * (VIRIDIS[i + 1][k] - a)));
  return `rgb(${mix.join(",")})`;
}
const TINT = COLOR < 0 ? [0, 1] : range(COLOR);
const color = p => COLOR < 0 || TINT[0] === TINT[1] ? "#21918c" :
  shade((p.v[COLOR] - TINT[0]) / (TINT[1] - TINT[0]));

// A scale from values to [0, 1]; epsilon is logarithmic over a wide
// range. Ticks are the values themselves if they are few.
function scale(j) {
  const [least, largest] = range(j);
  // Wide intervals are cut at the frame.
  const most = largest > least ? 0.3 * (largest - least) : Infinity;
  let [low, high] = [least, largest];
  for (const p of P) {
    if (!interval || !p.on || !isFinite(p.v[j])) continue;
    low = Math.min(low, Math.max(p.lo[j], least - most));
    high = Math.max(high, Math.min(p.hi[j], largest + most));
  }
  const wide = O[j].name === "epsilon" && least > 0;
  const log = wide && largest / least > 5;
  [low, high] = span(log ? least : low, high, j);
  const f = log ? x => Math.log(Math.max(x, low)) : x => x;
  const pad = 0.04 * (f(high) - f(low));
  const start = f(low) - pad, size = f(high) - f(low) + 2 * pad;
  const at = x => Math.max(0, Math.min(1, (f(x) - start) / size));
  const values = [...new Set(P.map(p => p.v[j]).filter(isFinite))];
  const few = wide && values.length < 8;
  return { at, ticks: few ? values.sort((a, b) => a - b) :
    ticks(low, high, log) };
}
function ticks(low, high, log) {
  if (log) {
    const found = [];
    for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); e++) {
      for (const m of [1, 2, 5]) {
        const x = m * 10 ** e;
        if (x >= low * 0.999 && x <= high * 1.001) found.push(x);
      }
    }
    return found;
  }
  const raw = (high - low) / 4, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map(m => m * power).find(s => s >= raw);
  const found = [];
  for (let x = Math.ceil(low / step) * step; x <= high; x += step) {
    found.push(Number(x.toPrecision(12)));
  }
  return found;
}
const SCALES = O.map((_, j) => scale(j));

const SHAPES = [
  (x, y, r) => `<circle cx="${x}" cy="${y}" r="${r}"`,
  (x, y, r) => `<rect x="${x - r}" y="${y - r}" width="${2 * r}" height="${2 * r}"`,
  (x, y, r) => `<path d="M${x} ${y - 1.3 * r}L${x + 1.3 * r} ${y}L${x} ${y + 1.3 * r}L${x - 1.3 * r} ${y}Z"`,
  (x, y, r) => `<path d="M${x} ${y - 1.2 * r}L${x + 1.2 * r} ${y + r}L${x - 1.2 * r} ${y + r}Z"`,
  (x, y, r) => `<path d="M${x} ${y + 1.2 * r}L${x + 1.2 * r} ${y - r}L${x - 1.2 * r} ${y - r}Z"`,
  (x, y, r) => `<path d="M${x - r / 2} ${y - 1.3 * r}h${r}v${0.8 * r}h${0.8 * r}v${r}h${-0.8 * r}v${0.8 * r}h${-r}v${-0.8 * r}h${-0.8 * r}v${-r}h${0.8 * r}Z"`,
  (x, y, r) => `<path d="M${x - 1.2 * r} ${y}L${x - 0.6 * r} ${y - 1.1 * r}H${x + 0.6 * r}L${x + 1.2 * r} ${y}L${x + 0.6 * r} ${y + 1.1 * r}H${x - 0.6 * r}Z"`,
  (x, y, r) => `<path d="M${Array.from({length: 10}, (_, i) => {
    const far = (i % 2 ? 0.6 : 1.5) * r, turn = i * Math.PI / 5;
    return `${(x + far * Math.sin(turn)).toFixed(1)} ${(y - far * Math.cos(turn)).toFixed(1)}`;
  }).join("L")}Z"`,
  (x, y, r) => `<path d="M${x - 1.1 * r} ${y - 1.1 * r}H${x + 1.1 * r}L${x - 1.1 * r} ${y + 1.1 * r}H${x + 1.1 * r}Z"`,
];
function mark(p, x, y, look) {
  const many = P.length > 300 ? 0.7 : 1;
  const r = p === look.chosen ? 7 : many * (p.on ? 5 : 3.2);
  const kept = look.kept.has(p.i);
  const shape = SHAPES[p.m % SHAPES.length](x.toFixed(1) * 1, y.toFixed(1) * 1, r);
  const fill = kept ? color(p) : "var(--card)";
  const edge = p === look.chosen ? CHOSEN : kept ? "var(--edge)" : "var(--faint)";
  const width = p === look.chosen ? 3 : p === look.looked ? 2.4 : 0.8;
  return `${shape} class="mark" data-i="${p.i}" fill="${fill}" ` +
    `stroke="${edge}" stroke-width="${width}"/>`;
}
// What violates a limit is drawn first, what is chosen last.
const inOrder = look => shown(look)
  .sort((a, b) => rank(a, look) - rank(b, look));
const shown = look => P.filter(p => document.getElementById("beaten").checked ||
  p.on || p === look.chosen || p === look.looked);
const rank = (p, look) => (p === look.chosen ? 8 : 0) +
  (look.kept.has(p.i) ? 4 : 0) + (p.on ? 1 : 0);

function pair(a, b, look) {
  const w = 340, h = 250, left = 54, right = 10, top = 10, bottom = 36;
  const x = v => left + SCALES[a].at(v) * (w - left - right);
  const y = v => h - bottom - SCALES[b].at(v) * (h - top - bottom);
  let out = "";
  for (const t of SCALES[a].ticks) {
    out += `<path d="M${x(t)} ${top}V${h - bottom}" stroke="var(--grid)"/>` +
      `<text x="${x(t)}" y="${h - bottom + 14}" text-anchor="middle">${text(t)}</text>`;
  }
  for (const t of SCALES[b].ticks) {
    out += `<path d="M${left} ${y(t)}H${w - right}" stroke="var(--grid)"/>` +
      `<text x="${left - 5}" y="${y(t) + 4}" text-anchor="end">${text(t)}</text>`;
  }
  out += limitShade(a, x, top, h - bottom, left, w - right, true) +
    limitShade(b, y, left, w - right, h - bottom, top, false);
  let marks = "";
  for (const p of inOrder(look)) {
    if (!isFinite(p.v[a]) || !isFinite(p.v[b])) continue;
    if (interval && p.on && look.kept.has(p.i)) {
      const stroke = p === look.chosen ? CHOSEN : "var(--mid)";
      out += `<path d="M${x(p.lo[a])} ${y(p.v[b])}H${x(p.hi[a])}` +
        `M${x(p.v[a])} ${y(p.lo[b])}V${y(p.hi[b])}" stroke="${stroke}" ` +
        `stroke-width="${p === look.chosen ? 1.6 : 0.8}"/>`;
    }
    marks += mark(p, x(p.v[a]), y(p.v[b]), look);
  }
  out += marks + `<text class="title" x="${(left + w - right) / 2}" y="${h - 5}" ` +
    `text-anchor="middle">${O[a].title}${O[a].better === "low" ? " (lower is better)" : ""}</text>` +
    `<text class="title" transform="translate(10 ${(h - bottom + top) / 2})rotate(-90)" ` +
    `text-anchor="middle">${O[b].title}</text>`;
  return `<svg viewBox="0 0 ${w} ${h}" role="img" ` +
    `aria-label="${O[b].words} against ${O[a].words}">${out}</svg>`;
}
// Hatches what a limit forbids: from the limit to the worse end of the axis.
function limitShade(j, at, from, to, start, end, vertical) {
  const limit = state.limits[j];
  if (limit === null) return "";
  const here = at(limit), worse = sign[j] > 0 ? end : start;
  const [low, high] = [Math.min(here, worse), Math.max(here, worse)];
  const box = vertical ?
    `x="${low}" y="${from}" width="${high - low}" height="${to - from}"` :
    `x="${from}" y="${low}" width="${to - from}" height="${high - low}"`;
  return `<rect ${box} fill="var(--quiet)" opacity="0.1"/>`;
}

function drawPairs(look) {
  const at = n => O.findIndex(o => o.name === n);
  const wanted = [["epsilon", "accuracy"], ["gap", "accuracy"],
    ["epsilon", "gap"], ["coverage", "accuracy"], ["epsilon", "coverage"],
    ["gap", "coverage"]].map(x => x.map(at))
    .filter(x => x.every(j => j >= 0));
  document.getElementById("pairs").innerHTML =
    wanted.map(([a, b]) => pair(a, b, look)).join("");
}

function drawParallel(look) {
  const narrow = window.innerWidth < 600;
  const w = narrow ? 420 : 760, h = 300, side = narrow ? 44 : 60;
  const top = 34, bottom = 22;
  const x = j => side + j * (w - 2 * side) / (O.length - 1);
  const y = (j, v) => {
    const t = SCALES[j].at(v);
    return top + (sign[j] > 0 ? t : 1 - t) * (h - top - bottom);
  };
  let lines = "";
  for (const p of inOrder(look)) {
    if (!p.v.every(isFinite)) continue;
    const kept = look.kept.has(p.i), main = p === look.chosen;
    const path = O.map((_, j) => `${j ? "L" : "M"}${x(j)} ${y(j, p.v[j]).toFixed(1)}`);
    lines += `<path class="mark" data-i="${p.i}" d="${path.join("")}" fill="none" ` +
      `stroke="${main ? CHOSEN : kept ? color(p) : FAINT}" ` +
      `stroke-width="${main ? 3.5 : p === look.looked ? 2.6 : kept && p.on ? 1.4 : 0.7}" ` +
      `opacity="${main || !kept ? 1 : p.on ? 0.9 : 0.45}"/>`;
  }
  let axes = "";
  O.forEach((o, j) => {
    axes += `<path d="M${x(j)} ${top}V${h - bottom}" stroke="var(--edge)"/>` +
      `<text class="title" x="${x(j)}" y="14" text-anchor="middle">${o.words}</text>`;
    for (const t of SCALES[j].ticks) {
      axes += `<path d="M${x(j) - 4} ${y(j, t)}h4" stroke="var(--edge)"/>` +
        `<text x="${x(j) - 7}" y="${y(j, t) + 4}" text-anchor="end">${text(t)}</text>`;
    }
    if (state.limits[j] !== null) {
      const here = y(j, state.limits[j]);
      axes += `<rect x="${x(j) - 5}" y="${here}" width="10" ` +
        `height="${Math.max(0, h - bottom - here)}" fill="var(--quiet)" opacity="0.3"/>`;
    }
    if (interval && look.chosen && isFinite(look.chosen.v[j])) {
      const p = look.chosen;
      axes += `<path d="M${x(j)} ${y(j, p.lo[j])}V${y(j, p.hi[j])}" ` +
        `stroke="${CHOSEN}" stroke-width="5" opacity="0.55"/>`;
    }
  });
  const svg = document.getElementById("parallel");
  svg.setAttribute("viewBox", `0 0 ${w} ${h}`);
  svg.innerHTML = lines + axes;
}
