// Time: the server's clock, and texts that follow it.

import { el, setText } from "./dom.js";

let ahead = 0; // of this browser's clock, in ms
let held = 0; // the instant at which ages are held; 0 while they go on

/** Sets the server's clock. */
export function setClock(now) {
  ahead = now - Date.now();
}

/** Holds all ages at an instant, as what is shown was then; 0 lets them go on. */
export function holdAges(at) {
  held = at;
  tick();
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

/** Returns the time of day of an instant, and its day unless that is today. */
export function timeOfDay(at) {
  const date = new Date(at);
  const time = date.toLocaleTimeString([], {
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    hourCycle: "h23",
  });
  if (date.toDateString() === new Date(now()).toDateString()) return time;
  const sameYear = date.getFullYear() === new Date(now()).getFullYear();
  const day = date.toLocaleDateString("en-GB", {
    day: "numeric",
    month: "short",
    year: sameYear ? undefined : "numeric",
  });
  return `${day} ${time}`;
}

/** Returns the name of the browser's zone at an instant: UTC, GMT+1. */
export function zoneOf(at) {
  const parts = new Intl.DateTimeFormat("en-GB", { timeZoneName: "short" }).formatToParts(at);
  return parts.find((part) => part.type === "timeZoneName")?.value ?? "";
}

/** Returns an instant with its zone. */
export function instant(at) {
  return `${timeOfDay(at)} ${zoneOf(at)}`;
}

/** Makes a text of how long something has been going on: until now, or until it was seen last. */
export function age(since, seen = 0) {
  if (!since) return el("span", { title: "not known" }, "–");
  return ticking(
    el("time", { datetime: new Date(since).toISOString(), title: instant(since) }),
    () => duration((seen || held || now()) - since),
  );
}

/** Makes a text of how long ago something was, which goes on even if ages are held. */
export function ago(at) {
  const node = el("time", { datetime: new Date(at).toISOString(), title: instant(at) });
  return ticking(node, () => `${duration(now() - at)} ago`);
}

/** Makes a text of how long something lasts still, if nobody renews it. */
export function left(until, seen = 0) {
  if (until === -1) return el("span", {}, "no end");
  if (!until) return el("span", {}, "–");
  const node = el("time", { datetime: new Date(until).toISOString(), title: instant(until) });
  return ticking(node, () => {
    const rest = until - (seen || held || now());
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
