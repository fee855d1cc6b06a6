import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { StopAutomaton, StopMatcher } from "./stop-matcher.js";

interface Outcome {
  readonly text: string;
  readonly matched: string | undefined;
}

function run(pieces: readonly string[], stops: readonly string[], includeStop = false): Outcome {
  const matcher = new StopMatcher(new StopAutomaton(stops), includeStop);
  let text = "";
  for (const piece of pieces) {
    text += matcher.push(piece);
    if (matcher.matched !== undefined) return { text, matched: matcher.matched };
  }
  return { text: text + matcher.flush(), matched: undefined };
}

/** The rule in the plainest words: first end wins, then the longest. */
function specification(text: string, stops: readonly string[], includeStop: boolean): Outcome {
  for (let end = 1; end <= text.length; end += 1) {
    const ending = stops
      .filter((stop) => text.slice(0, end).endsWith(stop))
      .toSorted((a, b) => b.length - a.length);
    const [matched] = ending;
    if (matched !== undefined)
      return { text: text.slice(0, includeStop ? end : end - matched.length), matched };
  }
  return { text, matched: undefined };
}

test("finds what the plain rule finds, however the text is cut", () => {
  const letters = fc.stringMatching(/^[ab]{1,5}$/);
  const property = fc.property(
    fc.array(letters, { minLength: 1, maxLength: 5 }),
    fc.array(fc.stringMatching(/^[abc]{0,4}$/), { maxLength: 10 }),
    fc.boolean(),
    (stops, pieces, includeStop) => {
      assert.deepEqual(run(pieces, stops, includeStop), specification(pieces.join(""), stops, includeStop));
    },
  );
  fc.assert(property, { numRuns: 2000, seed: 3 });
});

test("holds back no more than may become a stop string", () => {
  const matcher = new StopMatcher(new StopAutomaton(["</tool>", "ENDE"]), false);
  assert.equal(matcher.push("text <"), "text ");
  assert.equal(matcher.push("b> EN"), "<b> ");
  assert.equal(matcher.push("D of"), "END of");
  assert.equal(matcher.push(" it </to"), " it ");
  assert.equal(matcher.push("ol>never"), "");
  assert.equal(matcher.matched, "</tool>");
});

test("nothing is held back when the stop string belongs to the output", () => {
  const matcher = new StopMatcher(new StopAutomaton(["END"]), true);
  assert.equal(matcher.push("aEN"), "aEN");
  assert.equal(matcher.push("Dtail"), "D");
});

test("time is linear in hostile text", () => {
  const stops = Array.from({ length: 64 }, (_, index) => `${"a".repeat(900 + index)}b`);
  const automaton = new StopAutomaton(stops);
  let steps = 0;
  const step = automaton.step.bind(automaton);
  automaton.step = (from, unit) => {
    steps += 1;
    return step(from, unit);
  };
  const matcher = new StopMatcher(automaton, false);
  for (let index = 0; index < 20_000; index += 1) matcher.push("a");
  assert.equal(steps, 20_000);
  assert.equal(matcher.push("c").length, 963 + 1, "what was held back comes out");
});
