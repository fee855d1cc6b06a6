import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  array,
  assert as assertThat,
  constantFrom,
  double,
  integer,
  property,
  string,
  uniqueArray,
} from "fast-check";
import { labelProbabilities, readTokenChoices, type TokenChoice } from "./label-probabilities.js";

type Alternatives = Readonly<Record<string, number>>;

/** Tokens by their alternatives; the first of each was generated. */
function tokens(...alternatives: readonly Alternatives[]): readonly TokenChoice[] {
  return readTokenChoices({
    content: alternatives.map((options) => {
      const entries = Object.entries(options).map(([token, probability]) => ({
        token,
        logprob: Math.log(probability),
        bytes: [...Buffer.from(token)],
      }));
      return { ...entries[0], top_logprobs: entries };
    }),
  });
}

const quoted = (content: string, label: string) => ({
  content,
  offset: content.lastIndexOf(label),
  terminator: '"',
});

function close(
  actual: Readonly<Record<string, number>> | undefined,
  expected: Readonly<Record<string, number>>,
): void {
  assert.ok(actual !== undefined, "there are probabilities");
  assert.deepEqual(Object.keys(actual), Object.keys(expected));
  for (const [label, probability] of Object.entries(expected))
    assert.ok(
      Math.abs(actual[label]! - probability) < 1e-12,
      `${label}: ${actual[label]} is not ${probability}`,
    );
}

describe("probabilities of labels", () => {
  it("come from the token that decided, whatever was generated before", () => {
    const spelled = tokens(
      { "<think>pass?</think>": 1 },
      { '{"verdict": "': 1 },
      { fail: 0.7, pass: 0.2, maybe: 0.1 },
      { '"}': 1 },
    );
    close(labelProbabilities(spelled, quoted('{"verdict": "fail"}', "fail"), ["pass", "fail"]), {
      pass: 0.2 / 0.9,
      fail: 0.7 / 0.9,
    });
  });

  it("follow labels that begin alike to where they part", () => {
    const spelled = tokens(
      { '{"verdict": "': 1 },
      { "1": 0.6, "2": 0.4 },
      { "0": 0.25, '"': 0.75 },
      { '"}': 1 },
    );
    close(labelProbabilities(spelled, quoted('{"verdict": "10"}', "10"), ["1", "2", "10"]), {
      "1": 0.45,
      "2": 0.4,
      "10": 0.15,
    });
    const ended = tokens({ "1": 0.6, "2": 0.4 });
    close(labelProbabilities(ended, { content: "1", offset: 0, terminator: "" }, ["1", "2"]), {
      "1": 0.6,
      "2": 0.4,
    });
  });

  it("take a token that holds the quote and a label's beginning", () => {
    const spelled = tokens({ '{"verdict":': 1 }, { '"par': 0.5, '"pass': 0.3, '"f': 0.2 }, { 'tly"}': 1 });
    close(labelProbabilities(spelled, quoted('{"verdict":"partly"}', "partly"), ["pass", "partly", "fail"]), {
      pass: 0.3,
      partly: 0.5,
      fail: 0.2,
    });
  });

  it("work on bytes: tokens may hold parts of characters", () => {
    const content = "é";
    const half = (byte: number, probability: number) => ({
      token: "\ufffd",
      bytes: [byte],
      logprob: Math.log(probability),
    });
    const spelled = readTokenChoices({
      content: [
        { ...half(0xc3, 0.9), top_logprobs: [half(0xc3, 0.9), { token: "n", logprob: Math.log(0.1) }] },
        { ...half(0xa9, 1), top_logprobs: [] },
      ],
    });
    close(labelProbabilities(spelled, { content, offset: 0, terminator: "" }, ["é", "n"]), {
      é: 0.9,
      n: 0.1,
    });
  });

  it("forgive a space and capitals in free text", () => {
    const spelled = tokens({ " Pass": 0.6, fail: 0.2, " FAIL": 0.2 });
    close(labelProbabilities(spelled, { content: "Pass", offset: 0, terminator: "" }, ["pass", "fail"]), {
      pass: 0.6,
      fail: 0.4,
    });
  });

  it("are unknown where alternatives leave labels open, say nothing of them, or are not of this text", () => {
    const place = { content: "partly", offset: 0, terminator: "" };
    const open = tokens({ partly: 0.5, pa: 0.3, fail: 0.2 });
    assert.equal(labelProbabilities(open, place, ["pass", "partly", "fail"]), undefined);
    const unlikely = tokens({ partly: 0.01, Well: 0.99 });
    assert.equal(labelProbabilities(unlikely, place, ["pass", "partly", "fail"]), undefined);
    assert.equal(labelProbabilities(tokens({ fail: 1 }), place, ["pass", "partly"]), undefined);
    assert.equal(labelProbabilities([], place, ["pass", "partly"]), undefined);
    assert.deepEqual(readTokenChoices({ content: "none" }), []);
  });
});

/** What a model that spells labels letter by letter, and ends them with a quote, shows on its way to one of them. */
function spelledOut(weights: ReadonlyMap<string, number>, given: string): readonly TokenChoice[] {
  const forms = [...weights].map(([label, weight]) => ({ form: `${label}"`, weight }));
  const path = `${given}"`;
  return Array.from(path, (own, at) => {
    const here = forms.filter(({ form }) => form.startsWith(path.slice(0, at)));
    const total = here.reduce((sum, { weight }) => sum + weight, 0);
    const shares = new Map<string, number>();
    for (const { form, weight } of here) shares.set(form[at]!, (shares.get(form[at]!) ?? 0) + weight / total);
    const alternatives = Array.from(shares, ([text, probability]) => ({ text, probability }));
    return { text: own, probability: shares.get(own)!, alternatives };
  });
}

it("any labels, spelled letter by letter: the truth within what is hidden, or nothing", () => {
  const label = string({ unit: constantFrom("a", "b"), minLength: 1, maxLength: 3 });
  const weight = double({ min: 0.01, max: 1, noNaN: true });
  assertThat(
    property(
      uniqueArray(label, { minLength: 2, maxLength: 6 }),
      array(weight, { minLength: 6, maxLength: 6 }),
      integer({ min: 0, max: 5 }),
      (labels, weights, pick) => {
        const total = labels.reduce((sum, _, index) => sum + weights[index]!, 0);
        const truth = new Map(labels.map((one, index) => [one, weights[index]! / total]));
        const given = labels[pick % labels.length]!;
        const place = { content: `${given}"`, offset: 0, terminator: '"' };
        const found = labelProbabilities(spelledOut(truth, given), place, labels);
        // labels that part from the given one at the same letter, and from each other later, are seen together only
        const partings = labels
          .filter((one) => one !== given)
          .map((one) => partingOf(`${one}"`, `${given}"`));
        const hidden = labels
          .filter((one) => one !== given)
          .filter((_, index) => partings.filter((other) => other === partings[index]).length > 1)
          .reduce((sum, one) => sum + truth.get(one)!, 0);
        if (found === undefined) return hidden > 0.05 || 1 - hidden < 0.1;
        const sum = Object.values(found).reduce((all, one) => all + one, 0);
        const isTrue = labels.every((one) => Math.abs(found[one]! - truth.get(one)!) <= hidden + 1e-9);
        return Math.abs(sum - 1) < 1e-9 && isTrue && hidden <= 0.05 + 1e-9;
      },
    ),
    { numRuns: 500, seed: 7 },
  );
});

function partingOf(one: string, other: string): string {
  let at = 0;
  while (one[at] === other[at]) at += 1;
  return `${at}${one[at]}`;
}
