// A process whose engine ends by a signal on a certain token: `node crash-process.js JOURNAL PROMPTS SIGNAL`, where PROMPTS is JSON,
// lists of tokens. Instead of a signal, `uncaught` is an error that nobody catches.
// Computes all of them at once and writes a line of JSON for each that ends: its index, and its error code or null.
import { writeSync } from "node:fs";
import { OctavoError } from "@octavo/protocol/errors";
import { collect, createFakeEngine, generationRequest } from "./engine-fixture.js";

/** Computing this token crashes the process. */
const crashToken = 42;

const [, , journal = "", prompts = "[]", end = "SIGSEGV"] = process.argv;
const { engine } = createFakeEngine({
  crashJournal: journal,
  backend: {
    script: () => 5,
    beforeStep: (plan) => {
      if (plan.tokenIds.subarray(0, plan.numTokens).includes(crashToken)) crash();
    },
  },
});

function crash(): void {
  if (end !== "uncaught") process.kill(process.pid, end);
  else
    setImmediate(() => {
      throw new OctavoError("internal_error", "nobody catches this");
    });
}

await Promise.all(
  (JSON.parse(prompts) as number[][]).map(async (prompt, index) => {
    let code: string | null = null;
    try {
      await collect(engine.generate(generationRequest(prompt, { maxTokens: 4 })));
    } catch (thrown) {
      ({ code } = OctavoError.from(thrown));
    }
    writeSync(1, `${JSON.stringify({ index, code })}\n`);
  }),
);
await engine[Symbol.asyncDispose]();
