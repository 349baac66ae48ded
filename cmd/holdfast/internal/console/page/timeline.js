// The timeline: for each process a lane, with the times in which it held, or waited.

import { el, svg } from "./dom.js";
import { duration, now, timeOfDay, zoneOf } from "./time.js";
import { lanesOf, shortHolds } from "./lanes.js";
import { gapsOf, watchedTimes } from "./watched.js";
import { several } from "./words.js";

const laneHeight = 46,
  top = 6,
  axis = 24,
  barHeight = 14,
  open = 14; // how long the dots are where a beginning or an end was not seen
const shortest = 20_000; // ms
const losses = ["expired", "lost"]; // how a hold ends that nobody has released
const ranges = [
  [60_000, "1 minute"],
  [300_000, "5 minutes"],
  [1_800_000, "30 minutes"],
  [14_400_000, "4 hours"],
];

/** Makes a timeline, which is drawn anew each second. */
export function timeline() {
  let told = null;
  const range = el(
    "select",
    { id: "range", change: () => draw() },
    ranges.map(([ms, text]) => el("option", { value: ms, selected: ms === 300_000 }, text)),
  );
  const control = el("div.field.inline", {}, el("label", { for: "range" }, "The last"), range);
  const picture = svg("svg.lanes", { role: "img" });
  const legend = el(
    "ul.legend",
    {},
    [
      ["held", "held"],
      ["waited", "waited"],
      ["lost", "✕ lost"],
      ["taken", "▲ taken by force"],
      ["open", "beginning or end not seen"],
      ["short", "short holds, counted only"],
      ["unseen-time", "not watched"],
    ].map(([what, text]) => el("li", {}, el(`span.key.${what}`, { "aria-hidden": "true" }), text)),
  );
  const node = el("div.timeline", {}, picture, legend);

  const draw = () => {
    if (!told || !node.isConnected || node.clientWidth === 0) return;
    const painted = paint(picture, told, Number(range.value), node.clientWidth);
    picture.setAttribute("aria-label", summary(painted, range.selectedOptions[0].text));
  };

  const timer = setInterval(draw, 1000);
  const sizes = new ResizeObserver(draw);
  sizes.observe(node);
  return {
    node,
    control,
    draw: (t) => {
      told = t;
      draw();
    },
    stop: () => {
      clearInterval(timer);
      sizes.disconnect();
    },
  };
}

/** Paints the last so many ms, or less if there is no more to see. It returns what it has painted. */
function paint(picture, told, range, width) {
  const to = now();
  const lanes = lanesOf(told, to - range, to);
  const shorts = shortHolds(told.past, to - range);
  const begins = [...lanes.flatMap((lane) => lane.bars), ...shorts].map((b) => b.from);
  const first = Math.min(...begins, to - shortest);
  const from = Math.max(to - range, first - (to - first) / 20);
  const at = (t) => Math.max(0, Math.min(width, (width * (t - from)) / (to - from)));
  const rows = lanes.length + (shorts.length > 0 ? 1 : 0);
  const height = top + Math.max(1, rows) * laneHeight + axis;
  picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
  picture.setAttribute("width", width);
  picture.setAttribute("height", height);
  const times = watchedTimes(told);
  const watched = times.some(([a, b]) => b >= from && a <= to);
  const gaps = gapsOf(times, from, to).map(([a, b]) =>
    svg("rect", { x: at(a), y: 0, width: at(b) - at(a), height: height - axis, fill: "url(#hatch)" }),
  );
  const bars = lanes.flatMap((lane, n) => drawLane(lane, top + n * laneHeight, at, width));
  picture.replaceChildren(hatch(), ...gaps, ...scale(from, to, at, height, width), ...bars);
  picture.append(...handOvers(lanes, at));
  if (shorts.length > 0) picture.append(...drawShorts(shorts, top + lanes.length * laneHeight, at, width));
  if (rows === 0) {
    const middle = { x: width / 2, y: top + laneHeight / 2 + 4, "text-anchor": "middle" };
    const text = watched ? "Nobody was seen to hold it or to wait." : "It was not watched in this time.";
    picture.append(svg("text.over", middle, text));
  }
  return { lanes, shorts };
}

/** Draws how many holds no look has seen. */
function drawShorts(shorts, y, at, width) {
  const shapes = [
    svg("line.rule", { x1: 0, x2: width, y1: y + laneHeight - 2, y2: y + laneHeight - 2 }),
    svg("text.label", { x: 2, y: y + 14 }, "short holds, seen by no look"),
  ];
  for (const s of shorts) {
    const x = at(s.from),
      wide = Math.max(2, at(s.to) - x);
    const text = `${several(s.times, "short hold", "short holds")} from ${timeOfDay(s.from)} to ${timeOfDay(s.to)}`;
    const title = svg("title", {}, text);
    const box = { x, y: y + 21, width: wide, height: barHeight, rx: 4, fill: "url(#hatch-held)" };
    shapes.push(svg("rect.bar.short", box, title));
    if (wide > 8 * String(s.times).length)
      shapes.push(svg("text.count", { x: x + wide / 2, y: y + 32, "text-anchor": "middle" }, String(s.times)));
  }
  return shapes;
}

function drawLane(lane, y, at, width) {
  const label = lane.who ? `${lane.who}  ${lane.process}` : lane.process;
  const fits = Math.max(8, Math.floor(width / 7.2));
  const shapes = [
    svg("line.rule", { x1: 0, x2: width, y1: y + laneHeight - 2, y2: y + laneHeight - 2 }),
    svg("text.label", { x: 2, y: y + 14 }, label.length > fits ? `${label.slice(0, fits - 1)}…` : label),
  ];
  for (const bar of lane.bars) {
    const x = at(bar.from),
      end = at(bar.to ?? Infinity),
      held = bar.what === "held",
      by = y + 21;
    const text =
      `${lane.who || lane.process} ${held ? "held" : "waited"} from ${timeOfDay(bar.from)}` +
      `${bar.openFrom ? " or earlier" : ""} ` +
      (bar.to ? `to ${timeOfDay(bar.to)}${bar.openTo ? " or later" : ""}` : "until now") +
      ` (${duration((bar.to ?? now()) - bar.from)} seen)`;
    const tall = held ? barHeight : 5,
      middle = by + barHeight / 2;
    shapes.push(
      svg(
        `rect.bar.${bar.what}${losses.includes(bar.end) ? ".lost" : ""}`,
        { x, y: middle - tall / 2, width: Math.max(2, end - x), height: tall, rx: held ? 4 : 2.5 },
        svg("title", {}, text),
      ),
    );
    const stub = (x1, x2) => svg(`line.open.${bar.what}`, { x1, x2, y1: middle, y2: middle });
    if (bar.openFrom) shapes.push(stub(x - open, x));
    if (bar.openTo) shapes.push(stub(end, end + open));
    if (losses.includes(bar.end))
      shapes.push(svg("text.mark.lost", { x: end, y: by + 12, "text-anchor": "middle" }, "✕"));
    if (bar.end === "taken")
      shapes.push(svg("text.mark.taken", { x: end, y: by + 12, "text-anchor": "middle" }, "▲"));
  }
  return shapes;
}

/** Draws a line from the lane that passed the lock on to the one that got it. */
function handOvers(lanes, at) {
  const ends = lanes.flatMap((lane, n) =>
    lane.bars.filter((b) => b.end === "passed").map((b) => ({ n, at: b.to })),
  );
  const begins = lanes.flatMap((lane, n) =>
    lane.bars.filter((b) => b.begin === "passed").map((b) => ({ n, at: b.from })),
  );
  const middle = (n) => top + n * laneHeight + 21 + barHeight / 2;
  return ends.flatMap((e) =>
    begins
      .filter((b) => b.at === e.at && b.n !== e.n)
      .map((b) => svg("line.hand-over", { x1: at(e.at), x2: at(e.at), y1: middle(e.n), y2: middle(b.n) })),
  );
}

function hatch() {
  const shape = { width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" };
  const pattern = (id) =>
    svg("pattern", { id, ...shape }, svg(`line.${id}`, { x1: 0, y1: 0, x2: 0, y2: 7 }));
  return svg("defs", {}, pattern("hatch"), pattern("hatch-held"));
}

/** Draws the axis, with round times. */
function scale(from, to, at, height, width) {
  const steps = [
    2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000, 7_200_000,
  ];
  const step = steps.find((s) => ((to - from) / s) * 80 < width) ?? steps.at(-1);
  const marks = [];
  for (let t = Math.ceil(from / step) * step; t < to; t += step) {
    const x = at(t);
    marks.push(svg("line.grid", { x1: x, x2: x, y1: 0, y2: height - axis }));
    if (x > 30 && x < width - 80)
      marks.push(svg("text.tick", { x, y: height - 7, "text-anchor": "middle" }, timeOfDay(t)));
  }
  marks.push(svg("text.zone", { x: width - 2, y: height - 7, "text-anchor": "end" }, zoneOf(to)));
  return marks;
}

function summary({ lanes, shorts }, range) {
  const parts = lanes.map((lane) => {
    const held = lane.bars.filter((b) => b.what === "held");
    const lost = held.filter((b) => losses.includes(b.end)).length;
    const times = held.length === 1 ? "once" : `${held.length} times`;
    return `${lane.who || lane.process}: seen to hold ${times}${lost ? `, lost ${lost}` : ""}`;
  });
  const unseen = shorts.reduce((sum, s) => sum + s.times, 0);
  if (unseen > 0) parts.push(`${several(unseen, "short hold", "short holds")} that no look has seen`);
  const text = parts.join("; ") || "Nobody was seen to hold it or to wait";
  return `Timeline of the last ${range}. ${text}. The table below has the same as text.`;
}
