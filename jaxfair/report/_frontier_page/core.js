"use strict";
// What is known, which limits hold, and what is best among what is left.
// Mirrors jaxfair.frontier.specify and best.
const D = JSON.parse(document.getElementById("data").textContent);
const O = D.objectives, P = D.points;
const sign = O.map(o => o.better === "high" ? -1 : 1);
P.forEach((p, i) => {
  p.i = i;
  p.v = p.v.map(x => x === null ? Infinity : x);  // epsilon without privacy
});
const interval = D.seeds > 1;
const HEIGHT = Math.max(0, O.findIndex(o => o.name === "accuracy"));
const COLOR = O.findIndex(o => o.name === "coverage");
const state = { limits: O.map(() => null), strict: false, by: HEIGHT,
  looked: null };

// The value of a setting that is compared with a limit.
function worst(p, j) {
  if (!state.strict || !interval || !isFinite(p.v[j])) return p.v[j];
  return sign[j] > 0 ? p.hi[j] : p.lo[j];
}
const keeps = (p, j) => state.limits[j] === null ||
  sign[j] * worst(p, j) <= sign[j] * state.limits[j] + 1e-12;
const keepsAll = p => O.every((_, j) => keeps(p, j));

// Lexicographic: the chosen objective, then the others in their order.
function best(among, by) {
  const order = [by, ...O.keys()].filter((j, k, all) => all.indexOf(j) === k);
  let top = null;
  for (const p of among) {
    const first = top === null ? 0 :
      order.find(j => p.v[j] !== top.v[j]);
    if (top === null ||
        (first !== undefined && sign[first] * (p.v[first] - top.v[first]) < 0)) {
      top = p;
    }
  }
  return top;
}

// Which single limit, moved how far, would let a setting in?
function nearest() {
  const told = [];
  O.forEach((o, j) => {
    if (state.limits[j] === null) return;
    const others = P.filter(p => O.every((_, k) => k === j || keeps(p, k)));
    if (!others.length) return;
    const reach = Math.min(...others.map(p => sign[j] * worst(p, j)));
    if (isFinite(reach)) told.push([j, outward(sign[j] * reach, j)]);
  });
  return told;
}

// Rounded so that the limit still lets the value in.
function outward(x, j) {
  const [low, high] = range(j);
  const digits = Math.max(0, 3 - Math.floor(Math.log10(
    Math.max(high - low, Math.abs(high), 1e-9))) - 1);
  const scale = 10 ** Math.min(digits, 6);
  const up = sign[j] > 0;
  const near = Math.round(x * scale);
  if (Math.abs(x * scale - near) < 1e-9) return near / scale;
  return (up ? Math.ceil(x * scale) : Math.floor(x * scale)) / scale;
}
function range(j) {
  const known = P.map(p => p.v[j]).filter(isFinite);
  return known.length ? [Math.min(...known), Math.max(...known)] : [0, 1];
}

// Where a slider may stand: at every value, up to a hundred of them. The
// loosest one is no limit.
function stops(j) {
  const ends = P.flatMap(p => !interval ? [p.v[j]] :
    [p.v[j], sign[j] > 0 ? p.hi[j] : p.lo[j]]);
  const all = [...new Set(ends.filter(x => x !== null && isFinite(x))
    .map(x => outward(x, j)))].sort((a, b) => a - b);
  if (all.length <= 100) return all;
  const kept = [];
  for (let k = 0; k < 100; k++) {
    kept.push(all[Math.round(k * (all.length - 1) / 99)]);
  }
  return [...new Set(kept)];
}
const STOPS = O.map((_, j) => stops(j));
const loosest = j => sign[j] > 0 ? STOPS[j].length - 1 : 0;

function text(x) {
  if (!isFinite(x)) return "none";
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size >= 1000) return x.toFixed(0);
  if (size >= 10) return String(Number(x.toFixed(1)));
  return String(Number(x.toFixed(size >= 1 ? 2 : 3)));
}
function told(p, j) {
  const fixed = !interval || p.lo[j] === null || p.lo[j] === p.hi[j];
  if (fixed) return text(p.v[j]);
  const digits = Math.abs(p.v[j]) < 10 ? 3 : 1;
  const [at, low, high] = [p.v[j], p.lo[j], p.hi[j]]
    .map(x => x.toFixed(digits));
  return `${at} [${low}, ${high}]`;
}
const sure = p => `${Math.round(100 * p.p)}%`;
const setting = p => p.sets.map(s => `--set ${s}`);
const command = p => [...(D.release ? [D.release, String(p.i)] : [D.run, ...setting(p)]),
  `--out ${D.out}`];
const named = p => [D.methods.length > 1 ? D.methods[p.m] : null,
  ...D.keys.map((k, i) => p.s[i] === "" ? null : `${k} ${p.s[i]}`)]
  .filter(x => x !== null).join(", ");
