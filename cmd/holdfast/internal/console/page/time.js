// Time: the server's clock, and texts that follow it.

import { el, setText } from "./dom.js";

let ahead = 0; // of this browser's clock, in ms

/** Sets the server's clock. */
export function setClock(now) {
  ahead = now - Date.now();
}

/** Returns the time on the server's clock. */
export function now() {
  return Date.now() + ahead;
}

/** Returns a duration as shortly as people want it: 1.2s, 45s, 3m12s, 2h05m, 3d04h. */
export function duration(ms) {
  const two = (n) => String(n).padStart(2, "0");
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const minutes = Math.floor(seconds / 60),
    hours = Math.floor(minutes / 60);
  if (seconds < 100) return `${seconds}s`;
  if (hours === 0) return `${minutes}m${two(seconds % 60)}s`;
  if (hours < 48) return `${hours}h${two(minutes % 60)}m`;
  return `${Math.floor(hours / 24)}d${two(hours % 24)}h`;
}

/** Returns the time of day of an instant. */
export function timeOfDay(at) {
  return new Date(at).toLocaleTimeString([], {
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    hourCycle: "h23",
  });
}

/** Makes a text of how long something has been going on. */
export function age(since) {
  if (!since) return el("span", { title: "not known" }, "–");
  return ticking(
    el("time", { datetime: new Date(since).toISOString(), title: new Date(since).toLocaleString() }),
    () => duration(now() - since),
  );
}

/** Makes a text of how long something lasts still, if nobody renews it. */
export function left(until) {
  if (until === -1) return el("span", {}, "no end");
  if (!until) return el("span", {}, "–");
  const node = el("time", { datetime: new Date(until).toISOString() });
  return ticking(node, () => {
    const rest = until - now();
    node.classList.toggle("over", rest < 0);
    return rest < 0 ? "over" : duration(rest + 999);
  });
}

const texts = new Set();

function ticking(node, text) {
  node.textContent = text();
  texts.add({ node, text });
  return node;
}

/** Brings all texts up to date. */
export function tick() {
  for (const t of texts) {
    if (t.node.isConnected) {
      t.seen = true;
      setText(t.node, t.text());
    } else if (t.seen) texts.delete(t);
    else t.seen = true; // it may not have been put into the page yet
  }
}

setInterval(tick, 1000);
