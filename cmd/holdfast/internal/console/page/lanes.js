// Lanes: for each process, when it was seen to hold and to wait, worked out from what has happened.

import { seenBefore, timeAt, watchedTimes } from "./watched.js";

const ends = ["released", "expired", "lost", "taken", "passed", "done", "failed"];
const mostLanes = 12;
const live = 4000; // ms after a look for which what it has seen counts as going on

/**
 * Returns the lanes of a name between two instants: {process, who, bars}. A bar is {what: "held" or "waited", from, to,
 * begin, end, openFrom, openTo}: it was seen from and to then, and, if it is open, it may have begun earlier or ended
 * later, which nobody has seen. to is null while it goes on. The lane that begins first is the first.
 *
 * told is {row, past, spans, asOf, old, whole}: row is null if it is not known; asOf is when it was seen; it is old if the
 * last look did not see it; and whole is since when nothing of the past is forgotten.
 */
export function lanesOf(told, from, to) {
  const lanes = new Lanes(told);
  for (const e of told.past) {
    if (ends.includes(e.what) && e.from) lanes.finish(e);
    if (["granted", "passed", "already"].includes(e.what) && e.holder)
      lanes.begin(e.holder, e.at, e.what, e.late || e.what === "already");
    if (e.what === "waits") lanes.wait(e.waiter, e.waiter.since || e.at, e.late && !e.waiter.since);
    if (e.what === "gone") lanes.leave(e);
  }
  lanes.endWith(told.row, told.asOf, told.old || to - told.asOf > live);
  return seen(lanes.all(), from, to);
}

/** Returns how many holds no look has seen, and when: {from, to, times}. */
export function shortHolds(past, from) {
  const all = [];
  for (const e of past.filter((e) => e.what === "unseen" && e.at >= from)) {
    const begun = Math.min(e.begun, e.at - 1000); // the look before was about then
    all.push({ from: Math.max(begun, all.at(-1)?.to ?? 0), to: e.at, times: e.times });
  }
  return all;
}

class Lanes {
  constructor(told) {
    this.times = watchedTimes(told);
    this.whole = told.whole;
    this.asOf = told.asOf;
    this.lanes = new Map();
    this.holds = new Map();
  }

  all() {
    return [...this.lanes.values()];
  }

  of(h) {
    const process = processOf(h);
    if (!this.lanes.has(process)) this.lanes.set(process, { process, who: "", bars: [] });
    const lane = this.lanes.get(process);
    lane.who = h.who || lane.who;
    return lane;
  }

  /** Returns the earliest instant from which on all was seen until then. */
  watchedFrom(at) {
    const time = timeAt(this.times, at);
    return time ? Math.min(at, Math.max(time[0], this.whole)) : at;
  }

  /** Returns the latest instant until which all was seen from then on. */
  watchedTo(at) {
    const time = timeAt(this.times, at);
    return time ? Math.max(at, Math.min(time[1], this.asOf)) : at;
  }

  begin(h, at, how, open) {
    const lane = this.of(h),
      bar = { what: "held", from: at, to: null, begin: how, openFrom: Boolean(open), openTo: false };
    for (const wait of lane.bars.filter(waits)) wait.to = Math.max(wait.from, at);
    lane.bars.push(bar);
    this.holds.set(keyOf(h), bar);
  }

  finish(e) {
    const seenTo = e.late ? seenBefore(this.times, e.at) : e.at;
    if (!this.holds.has(keyOf(e.from))) {
      const from = e.begun || this.watchedFrom(seenTo || e.at);
      this.begin(e.from, from, "", !e.begun);
    }
    const bar = this.holds.get(keyOf(e.from));
    Object.assign(bar, { to: Math.max(bar.from, seenTo), end: e.what, openTo: Boolean(e.late) });
  }

  wait(w, at, open) {
    const lane = this.of(w);
    if (!lane.bars.some(waits))
      lane.bars.push({ what: "waited", from: at, to: null, openFrom: Boolean(open), openTo: false });
  }

  leave(e) {
    const to = e.late ? seenBefore(this.times, e.at) : e.at;
    for (const wait of this.of(e.waiter).bars.filter(waits))
      Object.assign(wait, { to: Math.max(wait.from, to), openTo: Boolean(e.late) });
  }

  /** Brings the bars in line with what was seen last. What has ended unseen is open from where it was seen last. */
  endWith(row, asOf, old) {
    const holders = row?.holders ?? [],
      queue = row?.queue ?? [],
      all = row !== null && (row.held ?? 0) <= holders.length;
    for (const h of holders) {
      const since = holders.length === 1 || h.write ? row.since : 0,
        bar = this.holds.get(keyOf(h));
      if (!bar) this.begin(h, since || this.watchedFrom(asOf), "", !since);
      else if (bar.openFrom && since) Object.assign(bar, { from: since, openFrom: false });
    }
    for (const w of queue) this.wait(w, w.since || this.watchedFrom(asOf), !w.since);
    const holding = new Set(holders.map(keyOf)),
      queued = new Set(queue.map(processOf));
    const over = (bar) => Object.assign(bar, { to: this.watchedTo(bar.from), end: "unseen", openTo: true });
    for (const [key, bar] of this.holds) if (bar.to === null && all && !holding.has(key)) over(bar);
    for (const lane of this.all()) {
      if (all && !queued.has(lane.process)) lane.bars.filter(waits).forEach(over);
      if (row === null) lane.bars.filter((bar) => bar.to === null).forEach(over);
      if (old)
        for (const bar of lane.bars.filter((b) => b.to === null))
          Object.assign(bar, { to: Math.max(bar.from, asOf), openTo: true });
    }
  }
}

/** Reports whether a bar is of a wait that goes on. */
function waits(bar) {
  return bar.what === "waited" && bar.to === null;
}

function keyOf(h) {
  return `${h.owner} ${h.permit} ${h.write}`;
}

/** Returns the process of an owner: the part of its id that all owners of a process share. */
function processOf(h) {
  if (!h.owner) return h.permit ? `permit ${h.permit}` : "?";
  const cut = h.owner.lastIndexOf(":");
  return cut > 0 ? h.owner.slice(0, cut) : h.owner;
}

/** Returns those lanes of which something is seen; of very many, the latest. */
function seen(lanes, from, to) {
  const latest = (lane) => Math.max(...lane.bars.map((b) => b.to ?? Infinity));
  const earliest = (lane) => Math.min(...lane.bars.map((b) => b.from));
  for (const lane of lanes) lane.bars = lane.bars.filter((b) => (b.to ?? to) >= from && b.from <= to);
  const order = (a, b) => Number(a > b) - Number(a < b); // of numbers that may be infinite
  const shown = lanes.filter((lane) => lane.bars.length > 0).sort((a, b) => order(latest(b), latest(a)));
  return shown.slice(0, mostLanes).sort((a, b) => earliest(a) - earliest(b));
}
