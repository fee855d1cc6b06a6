// Whether the engine names the request whose prompt slowed a stream, with a long prompt injected at a known time, and
// blames nobody where nobody came, although other streams run all the time.
import { LLM, type RequestEvidence } from "@octavo/engine";
import { OctavoError } from "@octavo/protocol";
import { decodeRequest } from "./steps/step-costs.js";
import { readToEnd, saltedPrompt } from "./support/prompts.js";
import { median } from "./support/median.js";
import { report } from "./support/results.js";
import { checkAnswers, embeddedModel } from "./support/served-model.js";

const numRuns = 100;
const promptTokens = 4096;
const outputTokens = 60;
const injectAfter = 20;
/** Streams beside the watched one: there is always somebody who could be blamed. */
const numOthers = 3;

/** Streams that generate from now on until the function is called that this resolves with. */
async function others(llm: LLM, run: number): Promise<() => Promise<unknown>> {
  const leaving = new AbortController();
  const running = Array.from({ length: numOthers }, (_, index) => {
    const request = decodeRequest(saltedPrompt(24 + index, run + 7 * index), 4000);
    let began = (): void => {};
    const first = new Promise<void>((resolve) => {
      began = resolve;
    });
    const end = (async () => {
      for await (const event of llm.engine.generate(request, leaving.signal))
        if (event.kind === "delta") began();
    })();
    return { first, end };
  });
  await Promise.all(running.map(({ first }) => first));
  return () => {
    leaving.abort();
    return Promise.allSettled(running.map(({ end }) => end));
  };
}

/** A stream, and a long prompt injected into it or not; what the engine says of the stream, and the prompt's id. */
async function watch(
  llm: LLM,
  run: number,
  injects: boolean,
): Promise<{ evidence: RequestEvidence; burst: string }> {
  const { engine } = llm;
  const stopOthers = await others(llm, run);
  const stream = decodeRequest(saltedPrompt(32, run), outputTokens);
  const long = decodeRequest(saltedPrompt(promptTokens, run), 1);
  let injected: Promise<unknown> | undefined;
  let numDeltas = 0;
  for await (const event of engine.generate(stream)) {
    if (event.kind === "delta" && (numDeltas += 1) === injectAfter && injects)
      injected = readToEnd(engine.generate(long));
  }
  await injected;
  await stopOthers();
  const evidence = engine.evidence.request(stream.requestId);
  if (evidence === undefined) throw new OctavoError("internal_error", "the engine forgot the stream");
  return { evidence, burst: long.requestId };
}

await using llm = await LLM.load(embeddedModel, {});
await checkAnswers(llm);
let named = 0;
let falselyNamed = 0;
const slowestMs: number[] = [];
for (let run = 0; run < numRuns; run += 1) {
  const { evidence, burst } = await watch(llm, run, true);
  const bursts = evidence.slowGaps.filter(({ cause }) => cause === "prefill_burst");
  slowestMs.push(bursts[0]?.ms ?? 0);
  const culprits = bursts.map(
    ({ parts }) => parts.find(({ cause }) => cause === "prefill_burst")?.requests?.[0],
  );
  if (bursts.length > 0 && culprits.every((culprit) => culprit?.requestId === burst)) named += 1;
  llm.engine.resetPrefixCache();
  const quiet = await watch(llm, run, false);
  if (quiet.evidence.slowGaps.some(({ parts }) => parts.some(({ requests }) => requests !== undefined)))
    falselyNamed += 1;
  llm.engine.resetPrefixCache();
}
report("blame", [
  {
    name: "runs in which slow gaps are put down to the injected prompt, and to nobody else",
    unit: `of ${numRuns}`,
    octavo: named,
    target: { atLeast: numRuns },
    details: { promptTokens, injectAfter, outputTokens, numOthers, medianGapMs: median(slowestMs) },
  },
  {
    name: "runs without one in which anybody is named",
    unit: `of ${numRuns}`,
    octavo: falselyNamed,
    target: { atMost: 0 },
  },
]);
