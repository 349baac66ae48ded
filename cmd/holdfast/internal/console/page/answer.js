// Answers: what a message of the console says about Redis. What is not known is not free, and what is old says so.

import { instant } from "./time.js";

/**
 * Returns what a message is: {how, at, why, silent, asking}. how is "known", an answer; "partly", an answer for some
 * names; "old", what an earlier look has seen; or "unknown", nothing. at is when that was seen, 0 if it never was; why
 * is why the last look failed, "" if it did not; asking says that the first look has not ended yet.
 */
export function answerOf(message) {
  const { how, looked, error = "", silent = false } = message;
  return { how, at: looked, why: error, silent, asking: !error && (how === "old" || how === "unknown") };
}

/** Returns what stands in place of what is not known. */
export function notKnown(answer) {
  if (answer.asking) return "Redis is being asked. With very many names this takes a few seconds.";
  return answer.silent ? "Redis does not answer; not known." : "It could not be looked at; not known.";
}

/** Returns what is wrong, for the top of the page; "" if nothing is. */
export function troubleOf(answer) {
  if (!answer.why) return "";
  if (answer.how === "partly") return `Not all could be looked at: ${answer.why}`;
  const failed = `${answer.silent ? "Redis does not answer: nothing" : "Nothing"} could be looked at`;
  if (answer.how === "unknown") return `${failed}, and nothing has been seen before. ${answer.why}`;
  return `${failed}. What is shown was seen at ${instant(answer.at)}. ${answer.why}`;
}

/** Returns what is said of a list that has nothing, or had nothing when it was seen. */
export function emptyOf(answer, now, before) {
  return answer.how === "old" ? `${before} at ${instant(answer.at)}.` : `${now} now.`;
}
