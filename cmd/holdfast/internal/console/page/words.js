// Words: how kinds, holders and waiters are called.

import { el } from "./dom.js";

const kinds = {
  mutex: "mutex",
  rwlock: "read/write lock",
  leader: "election",
  once: "once",
  barrier: "barrier",
  slots: "numbered slots",
  shards: "shards",
  limiter: "limit",
  permits: "leased permits",
  semaphore: "semaphore",
  latch: "latch",
  count: "number",
  free: "free",
  unknown: "unknown",
};

export const lockKinds = ["mutex", "rwlock", "leader", "once"];
export const countKinds = ["semaphore", "permits", "slots", "shards", "latch", "barrier", "limiter", "count"];

/** Returns what a kind is called. */
export function kindOf(kind) {
  return kinds[kind] ?? kind;
}

/** Returns the address of the page of a name. A name of dots would be taken for a folder. */
export function hrefOf(id) {
  return id === "." || id === ".." || id === "" ? `/lock?name=${id}` : `/lock/${id}`;
}

/** Returns the shortest text that tells a holder or a waiter from others. */
export function shortOf(h) {
  return h.who || h.owner || (h.permit ? `permit ${h.permit}` : "somebody");
}

/** Returns all that names a holder or a waiter. */
export function fullOf(h) {
  const id = h.owner || (h.permit ? `permit ${h.permit}` : "");
  return h.who ? `${h.who} (${id})` : id || "somebody";
}

/** Makes the text of a holder or a waiter: who it is, and below, by which owner. */
export function person(h, ...more) {
  const id = h.owner || (h.permit ? `permit ${h.permit}` : "");
  return el(
    "span.person",
    {},
    h.who ? el("span.who", {}, h.who) : null,
    el(h.who ? "code.id" : "code.who", {}, id || "not known"),
    h.write ? el("span.chip.small", {}, "writes") : null,
    h.count ? el("span.muted", {}, `${h.count} leases`) : null,
    ...more,
  );
}

/**
 * Returns a text in which nothing is unseen and nothing changes the order of what stands around it: such characters are
 * written as numbers. What the server tells is like that already.
 */
export function plain(text) {
  return text.replace(/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
}

/** Returns a number with its word. */
export function several(n, one, many) {
  return n === 1 ? `1 ${one}` : `${n.toLocaleString("en")} ${many}`;
}
