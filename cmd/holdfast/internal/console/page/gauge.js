// Gauges: counts of semaphores, permits, slots, latches and barriers.

import { el } from "./dom.js";
import { kindOf } from "./words.js";

const countable = 24; // up to so many, each one is drawn

/** Returns how full something is: {used, all, text}. */
export function fillOf(row) {
  const value = row.value ?? 0,
    all = row.all ?? 0;
  switch (row.kind) {
    case "semaphore":
    case "permits":
    case "slots":
    case "shards":
      return { used: all - value, all, text: all ? `${value} of ${all} free` : `${value} free` };
    case "limiter":
      return {
        used: all - value,
        all,
        text: value < 0 ? `${-value} waited for` : `${value} of ${all} at once`,
      };
    case "latch":
      return { used: (row.most ?? value) - value, all: row.most ?? value, text: `${value} to come` };
    case "barrier":
      return {
        used: value,
        all,
        text: row.state === "open" ? `${value} of ${all} have come` : row.state || "nobody waits",
      };
    default:
      return { used: 0, all: 0, text: `${value}` };
  }
}

/** Makes a gauge, with its text. */
export function gauge(row) {
  const { used, all, text } = fillOf(row);
  if (all <= 0) return el("p.gauge-text.plain", {}, text);
  const within = Math.max(0, Math.min(all, used));
  const node = el("div.gauge", {
    role: "meter",
    "aria-label": `${kindOf(row.kind)} ${row.name}`,
    "aria-valuemin": 0,
    "aria-valuemax": all,
    "aria-valuenow": within,
    "aria-valuetext": text,
  });
  node.classList.toggle("full", within === all && ["semaphore", "permits", "slots"].includes(row.kind));
  if (all <= countable) {
    for (let n = 0; n < all; n++) node.append(el(n < within ? "span.pip.on" : "span.pip"));
  } else {
    const bar = el("span.bar");
    bar.style.width = `${(100 * within) / all}%`; // by a property: the policy of this page allows no style in markup
    node.append(bar);
  }
  return el("div.gauge-box", {}, node, el("p.gauge-text", {}, text));
}
