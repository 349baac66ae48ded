// The times in which somebody watched a name: only of these is it known what happened.

const near = 1500; // ms by which a look may be off the time that it is noted for

/** Returns the times in which a name was watched, in their order, up to asOf: [[from, to], …]. */
export function watchedTimes({ past, spans, asOf }) {
  const all = spans.map(([from, to]) => [from, to]);
  let open = null;
  for (const e of past) {
    if (e.what === "watched") open = e.at;
    if (e.what === "unwatched" && open !== null) {
      all.push([open, e.at]);
      open = null;
    }
  }
  if (open !== null) all.push([open, Math.max(open, asOf)]);
  const times = [];
  for (const [from, to] of all.sort((a, b) => a[0] - b[0])) {
    const last = times.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else times.push([from, to]);
  }
  return times;
}

/** Returns the times between two instants in which nobody watched. */
export function gapsOf(times, from, to) {
  const gaps = [];
  let at = from;
  for (const [a, b] of [...times, [to, to]]) {
    if (a > at + near) gaps.push([at, Math.min(a, to)]);
    at = Math.max(at, b);
  }
  return gaps;
}

/** Returns the watched time that an instant is in; null if there is none. */
export function timeAt(times, at) {
  return times.find(([from, to]) => from - near <= at && at <= to + near) ?? null;
}

/** Returns the end of the last watched time that ended before the one that an instant is in; 0 if there is none. */
export function seenBefore(times, at) {
  const here = timeAt(times, at);
  const before = times.filter(([, to]) => to < (here ? here[0] : at));
  return before.at(-1)?.[1] ?? 0;
}
