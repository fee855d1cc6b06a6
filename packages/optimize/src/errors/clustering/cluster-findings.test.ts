import assert from "node:assert/strict";
import { test } from "node:test";
import { Random } from "@octavo/statistics";
import { type CallFinding, withId } from "../finding.js";
import { clusterFindings } from "./cluster-findings.js";
import { clusterQuality } from "./cluster-quality.js";
import { templateOf } from "./lexical-vectors.js";

/** Ten causes as traces word them: four that the engine names, six by the texts of errors and answers. */
const planted: readonly ((random: Random) => { kind: CallFinding["kind"]; cause: string; text: string })[] = [
  ...["prefill_burst", "preemption", "queue", "eviction"].map((cause) => () => ({
    kind: "serving" as const,
    cause,
    text: `the stream paused between tokens, mostly because of ${cause}`,
  })),
  (random) => ({
    kind: "request",
    cause: "context_length_exceeded",
    text: `failed with context_length_exceeded: the prompt has ${random.integer(5000, 90_000)} tokens, the context ${random.pick([2048, 4096])}`,
  }),
  (random) => ({
    kind: "request",
    cause: "target_failed",
    text: `failed with target_failed: connection to gpu-${random.integer(1, 40)} reset by peer after ${random.integer(10, 9000)} ms`,
  }),
  (random) => ({
    kind: "request",
    cause: "target_failed",
    text: `failed with target_failed: certificate of host "h${random.integer(1, 900)}" has expired`,
  }),
  (random) => ({
    kind: "answer",
    cause: "is_json",
    text: `{"customer": "c-${random.integer(1, 1e6)}", "total": ${random.integer(1, 999)}, "items": [`,
  }),
  (random) => ({
    kind: "answer",
    cause: "is_json",
    text: `${random.pick(["Sure!", "Certainly,", "Of course:"])} here is the summary of order ${random.integer(1, 1e6)} that you asked for`,
  }),
  (random) => ({
    kind: "answer",
    cause: "no_refusal_patterns",
    text: `${random.pick(["I'm sorry, but", "I am sorry, but", "Sorry, but"])} I cannot help with invoice ${random.integer(1, 1e6)}`,
  }),
];

function plantedFindings(
  count: number,
  seed: number,
): { readonly findings: CallFinding[]; readonly classes: Map<string, string> } {
  const random = new Random(seed);
  const classes = new Map<string, string>();
  const findings = Array.from({ length: count }, (_, index) => {
    const which = random.integer(0, planted.length - 1);
    const { kind, cause, text } = planted[which]!(random);
    const finding = withId({
      kind,
      cause,
      description: text,
      quotes: [{ field: "x", text }],
      traceId: `t${index}`,
      epochMs: index,
      tenant: undefined,
      replica: undefined,
      model: undefined,
      lostMs: undefined,
    });
    classes.set(finding.id, String(which));
    return finding;
  });
  return { findings, classes };
}

test("planted causes are clusters of their own, whatever order their findings come in", async () => {
  const { findings, classes } = plantedFindings(600, 1);
  const random = new Random(2);
  const expected = await clusterFindings(findings);
  const labels = expected.flatMap((cluster) =>
    cluster.findings.map(({ id }) => [cluster.id, classes.get(id)!] as const),
  );
  const quality = clusterQuality(
    labels.map(([cluster]) => cluster),
    labels.map(([, truth]) => truth),
  );
  assert.ok(quality.purity >= 0.9 && quality.fragmentation <= 1.3, JSON.stringify(quality));
  assert.ok(expected.length >= 9 && expected.length <= 13, expected.map(({ wording }) => wording).join("\n"));
  for (let shuffle = 0; shuffle < 50; shuffle++) {
    const order = findings.map((finding) => ({ finding, key: random.uniform() }));
    const shuffled = order.toSorted((a, b) => a.key - b.key).map(({ finding }) => finding);
    assert.deepEqual(await clusterFindings(shuffled), expected);
  }
});

test("wordings beyond those clustered exactly go to the nearest cluster", async () => {
  const { findings, classes } = plantedFindings(400, 3);
  const clusters = await clusterFindings(findings, { maxWordings: 4 });
  const labels = clusters.flatMap(({ id, findings: own }) =>
    own.map((each) => [id, classes.get(each.id)!] as const),
  );
  assert.ok(
    clusterQuality(
      labels.map(([id]) => id),
      labels.map(([, truth]) => truth),
    ).purity >= 0.9,
  );
});

test("a cluster tells how alike its findings are worded", async () => {
  const { findings } = plantedFindings(1, 1);
  const worded = (texts: readonly string[]) =>
    texts.map((description, index) =>
      withId({ ...findings[0]!, kind: "request", cause: "c", description, traceId: `w${index}` }),
    );
  const seen = async (texts: readonly string[]) =>
    (await clusterFindings(worded(texts))).map(({ numWordings, commonestShare, spread }) => ({
      numWordings,
      commonestShare,
      spread,
    }));
  assert.deepEqual(await seen(["wait 1 ms", "wait 2 ms", "wait 3 ms"]), [
    { numWordings: 1, commonestShare: 1, spread: 0 },
  ]);
  const near = "the small host said that it would not take the call at that time of the day";
  const [mixed, ...others] = await seen([near, near, near, `${near} again`]);
  assert.deepEqual([others, mixed?.numWordings, mixed?.commonestShare], [[], 2, 0.75]);
  // a quarter of the findings is some way off, nearer than clusters are to each other
  assert.ok(mixed!.spread > 0 && mixed!.spread < 0.25 * 0.75, String(mixed?.spread));
});

test("numbers, ids and quoted values are no part of a wording", () => {
  const one = 'Request chatcmpl-8f3a2b1c9d took 1,204.5 ms: host "a\\"b" says 0123456789abcdef';
  const other = 'Request chatcmpl-77aa00bb11 took 3 ms: host "c" says fedcba9876543210';
  assert.equal(templateOf(one), templateOf(other));
  assert.notEqual(templateOf("queue is full"), templateOf("queue is empty"));
});

test("embeddings that do not fit together are refused", async () => {
  const { findings } = plantedFindings(40, 5);
  const odd = async (texts: readonly string[]) => texts.map((_, index) => (index === 0 ? [1, 2] : [1, 2, 3]));
  const few = async () => [[1, 2]];
  for (const embed of [odd, few, async (texts: readonly string[]) => texts.map(() => [NaN])])
    await assert.rejects(clusterFindings(findings, { embed }), { code: "target_answer_invalid" });
});
