// The timeline: for each process a lane, with the times in which it held, or waited.

import { el, svg } from "./dom.js";
import { duration, now, timeOfDay } from "./time.js";

const laneHeight = 46, top = 6, axis = 24, barHeight = 14;
const mostLanes = 12;
const shortest = 20_000; // ms
const ranges = [[60_000, "1 minute"], [300_000, "5 minutes"], [1_800_000, "30 minutes"], [14_400_000, "4 hours"]];

/** Makes a timeline, which is drawn anew each second. */
export function timeline() {
  let told = null;
  const range = el("select", { id: "range", change: () => draw() }, ranges.map(([ms, text]) => el("option", { value: ms, selected: ms === 300_000 }, text)));
  const control = el("div.field.inline", {}, el("label", { for: "range" }, "The last"), range);
  const picture = svg("svg.lanes", { role: "img" });
  const legend = el("ul.legend", {},
    [["held", "held"], ["waited", "waited"], ["lost", "✕ lost"], ["taken", "▲ taken by force"], ["unseen-time", "nobody looked"]].map(
      ([what, text]) => el("li", {}, el(`span.key.${what}`, { "aria-hidden": "true" }), text)));
  const node = el("div.timeline", {}, picture, legend);

  const draw = () => {
    if (!told || !node.isConnected || node.clientWidth === 0) return;
    const to = now(), width = node.clientWidth;
    const lanes = lanesOf(told, to - Number(range.value), to);
    const first = Math.min(...lanes.flatMap((lane) => lane.bars.map((b) => b.from)), to - shortest);
    const from = Math.max(to - Number(range.value), first - (to - first) / 20); // no more than there is to see
    const at = (t) => Math.max(0, Math.min(width, (width * (t - from)) / (to - from)));
    const height = top + Math.max(1, lanes.length) * laneHeight + axis;
    picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    picture.setAttribute("width", width);
    picture.setAttribute("height", height);
    picture.setAttribute("aria-label", summary(lanes, range.selectedOptions[0].text));
    picture.replaceChildren(hatch(), ...unwatched(told, from, to).map(([a, b]) =>
      svg("rect.unwatched", { x: at(a), y: 0, width: Math.max(0, at(b) - at(a)), height: height - axis, fill: "url(#hatch)" })),
    ...scale(from, to, at, height, width), ...lanes.flatMap((lane, n) => drawLane(lane, top + n * laneHeight, at, width)),
    ...handOvers(lanes, at));
    if (lanes.length === 0) picture.append(svg("text.empty", { x: width / 2, y: top + laneHeight / 2 + 4, "text-anchor": "middle" }, "Nobody held it or waited."));
  };

  const timer = setInterval(draw, 1000);
  const sizes = new ResizeObserver(draw);
  sizes.observe(node);
  return { node, control, draw: (t) => { told = t; draw(); }, stop: () => { clearInterval(timer); sizes.disconnect(); } };
}

/** Returns the process of an owner: the part of its id that all owners of a process share. */
function processOf(h) {
  if (!h.owner) return h.permit ? `permit ${h.permit}` : "?";
  const cut = h.owner.lastIndexOf(":");
  return cut > 0 ? h.owner.slice(0, cut) : h.owner;
}

/**
 * Returns the lanes of what was told: {process, who, bars: [{what, from, to, begin, end}]}. A hold that began
 * nobody knows when begins at from. The first lane begins first.
 */
function lanesOf({ row, past }, from, to) {
  const lanes = new Map();
  const laneOf = (h) => {
    const process = processOf(h);
    if (!lanes.has(process)) lanes.set(process, { process, who: "", bars: [] });
    const lane = lanes.get(process);
    lane.who = h.who || lane.who;
    return lane;
  };
  const bars = new Map(), keyOf = (h) => `${h.owner} ${h.permit} ${h.write}`;
  const begin = (h, at, how) => {
    const bar = { what: "held", from: at, to: null, begin: how, write: h.write };
    bars.set(keyOf(h), bar);
    const lane = laneOf(h);
    for (const b of lane.bars) if (b.what === "waited" && b.to === null) b.to = at;
    lane.bars.push(bar);
  };
  const finish = (h, at, how, since) => {
    if (!bars.has(keyOf(h))) begin(h, since || from, "unknown");
    Object.assign(bars.get(keyOf(h)), { to: at, end: how });
  };
  const wait = (w, at) => {
    const lane = laneOf(w);
    if (!lane.bars.some((b) => b.what === "waited" && b.to === null)) lane.bars.push({ what: "waited", from: at, to: null });
  };
  for (const e of past) {
    if (["released", "expired", "taken", "passed", "done", "failed"].includes(e.what) && e.from) finish(e.from, e.at, e.what, e.begun);
    if (["granted", "passed"].includes(e.what) && e.holder) begin(e.holder, e.at, e.what);
    if (e.what === "waits") wait(e.waiter, e.waiter.since || e.at);
  }
  const holding = new Set((row.holders ?? []).map(keyOf)), queued = new Set((row.queue ?? []).map(processOf));
  for (const h of row.holders ?? []) {
    if (!bars.has(keyOf(h))) begin(h, (row.holders.length === 1 || h.write) && row.since ? row.since : from, "unknown");
  }
  for (const w of row.queue ?? []) wait(w, w.since || from);
  for (const [key, bar] of bars) if (bar.to === null && !holding.has(key)) Object.assign(bar, { to: bar.from, end: "unseen" });
  for (const lane of lanes.values()) {
    for (const b of lane.bars) if (b.what === "waited" && b.to === null && !queued.has(lane.process)) b.to = b.from; // it gave up, nobody knows when
    lane.bars = lane.bars.filter((b) => (b.to ?? to) >= from && b.from <= to);
  }
  const shown = [...lanes.values()].filter((lane) => lane.bars.length > 0);
  const latest = (lane) => Math.max(...lane.bars.map((b) => b.to ?? Infinity));
  return shown.sort((a, b) => latest(b) - latest(a)).slice(0, mostLanes)
    .sort((a, b) => Math.min(...a.bars.map((x) => x.from)) - Math.min(...b.bars.map((x) => x.from)));
}

function drawLane(lane, y, at, width) {
  const label = lane.who ? `${lane.who}  ${lane.process}` : lane.process;
  const fits = Math.max(8, Math.floor(width / 7.2));
  const shapes = [svg("line.rule", { x1: 0, x2: width, y1: y + laneHeight - 2, y2: y + laneHeight - 2 }),
    svg("text.label", { x: 2, y: y + 14 }, label.length > fits ? `${label.slice(0, fits - 1)}…` : label)];
  for (const bar of lane.bars) {
    const x = at(bar.from), end = at(bar.to ?? Infinity), held = bar.what === "held", by = y + 21;
    const text = `${lane.who || lane.process} ${held ? "held" : "waited"} from ${timeOfDay(bar.from)}` +
      (bar.to ? ` for ${duration(bar.to - bar.from)}` : " until now");
    shapes.push(svg(`rect.bar.${bar.what}${bar.end === "expired" ? ".lost" : ""}`, { x, y: held ? by : by + barHeight / 2 - 2.5,
      width: Math.max(2, end - x), height: held ? barHeight : 5, rx: held ? 4 : 2.5 }, svg("title", {}, text)));
    if (bar.end === "expired") shapes.push(svg("text.mark.lost", { x: end, y: by + 12, "text-anchor": "middle" }, "✕"));
    if (bar.end === "taken") shapes.push(svg("text.mark.taken", { x: end, y: by + 12, "text-anchor": "middle" }, "▲"));
  }
  return shapes;
}

/** Draws a line from the lane that passed the lock on to the one that got it. */
function handOvers(lanes, at) {
  const ends = lanes.flatMap((lane, n) => lane.bars.filter((b) => b.end === "passed").map((b) => ({ n, at: b.to })));
  const begins = lanes.flatMap((lane, n) => lane.bars.filter((b) => b.begin === "passed").map((b) => ({ n, at: b.from })));
  const middle = (n) => top + n * laneHeight + 21 + barHeight / 2;
  return ends.flatMap((e) => begins.filter((b) => b.at === e.at && b.n !== e.n).map((b) =>
    svg("line.hand-over", { x1: at(e.at), x2: at(e.at), y1: middle(e.n), y2: middle(b.n) })));
}

/** Returns the times in which nobody looked. */
function unwatched({ past, spans }, from, to) {
  const seen = [...spans];
  let open = null;
  for (const e of past) {
    if (e.what === "watched") open = e.at;
    if (e.what === "unwatched" && open !== null) { seen.push([open, e.at]); open = null; }
  }
  seen.push([open ?? to, to]);
  const gaps = [];
  let at = from;
  for (const [a, b] of seen.sort((x, y) => x[0] - y[0])) {
    if (a > at + 1500) gaps.push([at, Math.min(a, to)]);
    at = Math.max(at, b);
  }
  return gaps;
}

function hatch() {
  return svg("defs", {}, svg("pattern", { id: "hatch", width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    svg("line.hatch", { x1: 0, y1: 0, x2: 0, y2: 7 })));
}

/** Draws the axis, with round times. */
function scale(from, to, at, height, width) {
  const steps = [2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000, 7_200_000];
  const step = steps.find((s) => ((to - from) / s) * 80 < width) ?? steps.at(-1);
  const marks = [];
  for (let t = Math.ceil(from / step) * step; t < to; t += step) {
    const x = at(t);
    marks.push(svg("line.grid", { x1: x, x2: x, y1: 0, y2: height - axis }));
    if (x > 30 && x < width - 30) marks.push(svg("text.tick", { x, y: height - 7, "text-anchor": "middle" }, timeOfDay(t)));
  }
  return marks;
}

function summary(lanes, range) {
  const parts = lanes.map((lane) => {
    const held = lane.bars.filter((b) => b.what === "held");
    const lost = held.filter((b) => b.end === "expired").length;
    return `${lane.who || lane.process}: held ${held.length === 1 ? "once" : `${held.length} times`}${lost ? `, lost ${lost}` : ""}`;
  });
  return `Timeline of the last ${range}. ${parts.join("; ") || "Nobody held it or waited"}. The table below has the same as text.`;
}
