// The timeline: for each process a lane, with the times in which it held, or waited.

import { el, svg } from "./dom.js";
import { duration, now, timeOfDay } from "./time.js";
import { lanesOf } from "./lanes.js";

const laneHeight = 46,
  top = 6,
  axis = 24,
  barHeight = 14;
const shortest = 20_000; // ms
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
      ["unseen-time", "nobody looked"],
    ].map(([what, text]) => el("li", {}, el(`span.key.${what}`, { "aria-hidden": "true" }), text)),
  );
  const node = el("div.timeline", {}, picture, legend);

  const draw = () => {
    if (!told || !node.isConnected || node.clientWidth === 0) return;
    const lanes = paint(picture, told, Number(range.value), node.clientWidth);
    picture.setAttribute("aria-label", summary(lanes, range.selectedOptions[0].text));
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

/** Paints the last so many ms, or less if there is no more to see. It returns the lanes. */
function paint(picture, told, range, width) {
  const to = now();
  const lanes = lanesOf(told, to - range, to);
  const first = Math.min(...lanes.flatMap((lane) => lane.bars.map((b) => b.from)), to - shortest);
  const from = Math.max(to - range, first - (to - first) / 20);
  const at = (t) => Math.max(0, Math.min(width, (width * (t - from)) / (to - from)));
  const height = top + Math.max(1, lanes.length) * laneHeight + axis;
  picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
  picture.setAttribute("width", width);
  picture.setAttribute("height", height);
  const gaps = unwatched(told, from, to).map(([a, b]) =>
    svg("rect", { x: at(a), y: 0, width: at(b) - at(a), height: height - axis, fill: "url(#hatch)" }),
  );
  const bars = lanes.flatMap((lane, n) => drawLane(lane, top + n * laneHeight, at, width));
  picture.replaceChildren(hatch(), ...gaps, ...scale(from, to, at, height, width), ...bars);
  picture.append(...handOvers(lanes, at));
  if (lanes.length === 0) {
    const middle = { x: width / 2, y: top + laneHeight / 2 + 4, "text-anchor": "middle" };
    picture.append(svg("text", middle, "Nobody held it or waited."));
  }
  return lanes;
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
      (bar.to ? ` for ${duration(bar.to - bar.from)}` : " until now");
    shapes.push(
      svg(
        `rect.bar.${bar.what}${bar.end === "expired" ? ".lost" : ""}`,
        {
          x,
          y: held ? by : by + barHeight / 2 - 2.5,
          width: Math.max(2, end - x),
          height: held ? barHeight : 5,
          rx: held ? 4 : 2.5,
        },
        svg("title", {}, text),
      ),
    );
    if (bar.end === "expired")
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

/** Returns the times in which nobody looked. */
function unwatched({ past, spans }, from, to) {
  const seen = [...spans];
  let open = null;
  for (const e of past) {
    if (e.what === "watched") open = e.at;
    if (e.what === "unwatched" && open !== null) {
      seen.push([open, e.at]);
      open = null;
    }
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
  return svg(
    "defs",
    {},
    svg(
      "pattern",
      { id: "hatch", width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
      svg("line.hatch", { x1: 0, y1: 0, x2: 0, y2: 7 }),
    ),
  );
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
    if (x > 30 && x < width - 30)
      marks.push(svg("text.tick", { x, y: height - 7, "text-anchor": "middle" }, timeOfDay(t)));
  }
  return marks;
}

function summary(lanes, range) {
  const parts = lanes.map((lane) => {
    const held = lane.bars.filter((b) => b.what === "held");
    const lost = held.filter((b) => b.end === "expired").length;
    const times = held.length === 1 ? "once" : `${held.length} times`;
    return `${lane.who || lane.process}: held ${times}${lost ? `, lost ${lost}` : ""}`;
  });
  const text = parts.join("; ") || "Nobody held it or waited";
  return `Timeline of the last ${range}. ${text}. The table below has the same as text.`;
}
