// Lanes: for each process, when it held and when it waited, worked out from what has happened.

const ends = ["released", "expired", "taken", "passed", "done", "failed"];
const mostLanes = 12;

/**
 * Returns the lanes of a name from an instant on: {process, who, bars}. A bar is {what: "held" or "waited", from,
 * to, begin, end}; to is null while it goes on. The lane that begins first is the first.
 */
export function lanesOf({ row, past }, from, to) {
  const lanes = new Lanes(from);
  for (const e of past) {
    if (ends.includes(e.what) && e.from) lanes.finish(e.from, e.at, e.what, e.begun);
    if (["granted", "passed"].includes(e.what) && e.holder) lanes.begin(e.holder, e.at, e.what);
    if (e.what === "waits") lanes.wait(e.waiter, e.waiter.since || e.at);
  }
  lanes.endWith(row);
  return seen(lanes.all(), from, to);
}

class Lanes {
  constructor(from) {
    this.from = from; // where a hold begins that began nobody knows when
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

  begin(h, at, how) {
    const lane = this.of(h),
      bar = { what: "held", from: at, to: null, begin: how };
    for (const wait of lane.bars.filter(waits)) wait.to = at;
    lane.bars.push(bar);
    this.holds.set(keyOf(h), bar);
  }

  finish(h, at, how, since) {
    if (!this.holds.has(keyOf(h))) this.begin(h, since || this.from, "unknown");
    Object.assign(this.holds.get(keyOf(h)), { to: at, end: how });
  }

  wait(w, at) {
    const lane = this.of(w);
    if (!lane.bars.some(waits)) lane.bars.push({ what: "waited", from: at, to: null });
  }

  /** Brings the bars in line with what stands there now. Of what has ended unseen only the beginning is known. */
  endWith(row) {
    const holders = row.holders ?? [],
      queue = row.queue ?? [];
    for (const h of holders) {
      const since = holders.length === 1 || h.write ? row.since : 0;
      if (!this.holds.has(keyOf(h))) this.begin(h, since || this.from, "unknown");
    }
    for (const w of queue) this.wait(w, w.since || this.from);
    const holding = new Set(holders.map(keyOf)),
      queued = new Set(queue.map(processOf));
    for (const [key, bar] of this.holds)
      if (bar.to === null && !holding.has(key)) Object.assign(bar, { to: bar.from, end: "unseen" });
    for (const lane of this.all()) {
      if (!queued.has(lane.process)) for (const wait of lane.bars.filter(waits)) wait.to = wait.from;
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
  const shown = lanes.filter((lane) => lane.bars.length > 0).sort((a, b) => (latest(b) > latest(a) ? 1 : -1));
  return shown.slice(0, mostLanes).sort((a, b) => earliest(a) - earliest(b));
}
