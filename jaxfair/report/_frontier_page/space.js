// Epsilon, gap and accuracy in space: an orthographic projection in SVG, which
// needs no graphics card and prints.
const AXES = ["epsilon", "gap", "accuracy"]
  .map(n => O.findIndex(o => o.name === n));
const view = { turn: -0.65, tilt: 0.42 };
const BOX = { w: 760, h: 480, size: 178 };

function project(a, b, c) {  // each in [0, 1]
  const x = 2 * a - 1, y = 2 * b - 1, z = 1.5 * c - 0.75;
  const ct = Math.cos(view.turn), st = Math.sin(view.turn);
  const depth = x * st + y * ct;
  const up = z * Math.cos(view.tilt) + depth * Math.sin(view.tilt);
  return { x: BOX.w / 2 + BOX.size * (x * ct - y * st),
    y: 0.47 * BOX.h - BOX.size * up,
    depth: depth * Math.cos(view.tilt) - z * Math.sin(view.tilt) };
}
const line = (p, q, stroke, width = 1) =>
  `<path d="M${p.x.toFixed(1)} ${p.y.toFixed(1)}L${q.x.toFixed(1)} ${q.y.toFixed(1)}" ` +
  `stroke="${stroke}" stroke-width="${width}"/>`;

// Walls and floor behind the points, with ticks on the edges in front.
function frame() {
  const [ja, jb, jc] = AXES;
  const near = project(0.5, 0, 0).depth < project(0.5, 1, 0).depth ? 0 : 1;
  const left = project(0, 0.5, 0).depth < project(1, 0.5, 0).depth ? 0 : 1;
  const back = 1 - near, far = 1 - left;
  let out = "";
  for (const t of SCALES[ja].ticks) {
    const a = SCALES[ja].at(t), p = project(a, near, 0);
    out += line(p, project(a, back, 0), "var(--grid)") +
      line(project(a, back, 0), project(a, back, 1), "var(--grid)") +
      label(project(a, beyond(near, 0.05), 0), text(t), 12);
  }
  for (const t of SCALES[jb].ticks) {
    const b = SCALES[jb].at(t), p = project(left, b, 0);
    out += line(p, project(far, b, 0), "var(--grid)") +
      line(project(far, b, 0), project(far, b, 1), "var(--grid)") +
      label(project(beyond(left, 0.05), b, 0), text(t), 12);
  }
  // The upright edge that is outermost on the left of the picture.
  const corners = [[0, 0], [0, 1], [1, 0], [1, 1]];
  const edge = corners.reduce((m, c) =>
    project(...c, 0).x < project(...m, 0).x ? c : m);
  for (const t of SCALES[jc].ticks) {
    const c = SCALES[jc].at(t), p = project(...edge, c);
    out += line(project(0, back, c), project(1, back, c), "var(--grid)") +
      line(project(far, 0, c), project(far, 1, c), "var(--grid)") +
      `<text x="${p.x - 6}" y="${p.y + 4}" text-anchor="end">${text(t)}</text>`;
  }
  const floor = [[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]];
  for (let k = 0; k < 4; k++) {
    out += line(project(...floor[k], 0), project(...floor[k + 1], 0), "var(--mid)");
  }
  out += line(project(...edge, 0), project(...edge, 1), "var(--mid)") +
    label(project(0.5, beyond(near, 0.16), 0), O[ja].title, 16, "title") +
    label(project(beyond(left, 0.16), 0.5, 0), O[jb].title, 16, "title");
  const top = project(...edge, 1);
  return out + `<text class="title" x="${Math.max(top.x, 90)}" y="${top.y - 10}" ` +
    `text-anchor="middle">${O[jc].title}</text>`;
}
const beyond = (side, by) => side === 0 ? -by : 1 + by;  // beyond an edge
const label = (p, t, down, kind = "") => `<text class="${kind}" ` +
  `x="${p.x.toFixed(1)}" y="${(p.y + down).toFixed(1)}" text-anchor="middle">${t}</text>`;

// The best accuracy within limits, over a grid; tinted by its coverage.
function sheet(look) {
  const [ja, jb, jc] = AXES, count = 20;
  const kept = P.filter(p => look.kept.has(p.i) && AXES.every(j => isFinite(p.v[j])));
  if (kept.length < 2) return [];
  const places = kept.map(p => ({ p, a: SCALES[ja].at(p.v[ja]),
    b: SCALES[jb].at(p.v[jb]), c: SCALES[jc].at(p.v[jc]) }));
  const last = count - 1, grid = [];
  for (let i = 0; i < count; i++) {
    grid.push([]);
    for (let k = 0; k < count; k++) {
      let top = null;
      for (const q of places) {
        if (q.a <= i / last + 1e-9 && q.b <= k / last + 1e-9 &&
            (top === null || q.c > top.c)) top = q;
      }
      grid[i].push(top);
    }
  }
  const end = j => state.limits[j] === null ? 1 : SCALES[j].at(state.limits[j]);
  const out = [];
  for (let i = 0; i < last && i / last < end(ja); i++) {
    for (let k = 0; k < last && k / last < end(jb); k++) {
      const four = [[i, k], [i + 1, k], [i + 1, k + 1], [i, k + 1]];
      if (four.some(([m, n]) => grid[m][n] === null)) continue;
      const at = four.map(([m, n]) => project(m / last, n / last, grid[m][n].c));
      const d = at.map((q, z) => `${z ? "L" : "M"}${q.x.toFixed(1)} ${q.y.toFixed(1)}`);
      out.push({ depth: at.reduce((s, q) => s + q.depth, 0) / 4 + 0.02,
        draw: `<path d="${d.join("")}Z" fill="${color(grid[i + 1][k + 1].p)}" ` +
          `fill-opacity="0.2" stroke="var(--card)" stroke-opacity="0.7" stroke-width="0.6"/>` });
    }
  }
  return out;
}

function drawSpace(look) {
  const svg = document.getElementById("space");
  const narrow = window.innerWidth < 600;
  Object.assign(BOX, narrow ? { w: 410, h: 370, size: 116 } :
    { w: 760, h: 480, size: 178 });
  svg.setAttribute("viewBox", `0 0 ${BOX.w} ${BOX.h}`);
  const [ja, jb, jc] = AXES;
  const things = document.getElementById("sheet").checked ? sheet(look) : [];
  for (const p of shown(look)) {
    if (!AXES.every(j => isFinite(p.v[j]))) continue;
    const a = SCALES[ja].at(p.v[ja]), b = SCALES[jb].at(p.v[jb]);
    const q = project(a, b, SCALES[jc].at(p.v[jc]));
    let draw = "";
    if (interval && p.on && look.kept.has(p.i)) {
      draw += line(project(a, b, SCALES[jc].at(p.lo[jc])),
        project(a, b, SCALES[jc].at(p.hi[jc])),
        p === look.chosen ? CHOSEN : "var(--quiet)", p === look.chosen ? 2 : 1);
    }
    if (p === look.chosen) draw += line(q, project(a, b, 0), CHOSEN, 1);
    things.push({ depth: q.depth - (p === look.chosen ? 9 : 0),
      draw: draw + mark(p, q.x, q.y, look) });
  }
  things.sort((s, t) => t.depth - s.depth);
  svg.innerHTML = frame() + things.map(t => t.draw).join("");
}

const STEPS = { left: [-0.15, 0], right: [0.15, 0], up: [0, 0.12],
  down: [0, -0.12] };
function turnBy(turn, tilt) {
  view.turn += turn;
  view.tilt = Math.max(0.02, Math.min(1.45, view.tilt + tilt));
  soon(drawSpace);
}
function listenToTurns() {
  const svg = document.getElementById("space");
  svg.addEventListener("keydown", event => {
    const way = event.key.replace("Arrow", "").toLowerCase();
    if (!(way in STEPS)) return;
    event.preventDefault();
    turnBy(...STEPS[way]);
  });
  for (const button of document.querySelectorAll("[data-turn]")) {
    button.addEventListener("click", () => turnBy(...STEPS[button.dataset.turn]));
  }
  let from = null;
  svg.addEventListener("pointerdown", e => { from = [e.clientX, e.clientY]; });
  window.addEventListener("pointerup", () => { from = null; });
  window.addEventListener("pointercancel", () => { from = null; });
  window.addEventListener("pointermove", e => {
    if (from === null) return;
    turnBy(-(e.clientX - from[0]) / 160,
      e.pointerType === "touch" ? 0 : (e.clientY - from[1]) / 160);
    from = [e.clientX, e.clientY];
  });
  document.getElementById("sheet").addEventListener("change",
    () => soon(drawSpace));
}
