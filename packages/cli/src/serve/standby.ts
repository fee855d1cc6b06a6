/**
 * `octavo serve` that has read its modules and waits to be told its arguments: a line on standard input, a JSON array. It ends where
 * none comes.
 */
import { LLM } from "@octavo/engine";
import { embeddedModelFolder } from "@octavo/artifacts/hub/local-model";
import { createProgram } from "../program.js";

const told = firstLine();
// failures show again where it serves
await Promise.allSettled([
  createProgram(["serve"]),
  import("./run-serve.js"),
  import("@octavo/server"),
  rehearse(),
]);
const line = await told;
if (line !== undefined) {
  process.argv.splice(2, Number.POSITIVE_INFINITY, ...(JSON.parse(line) as readonly string[]));
  await import("../main.js");
}

/** Loads a model as serving does, which reads what is imported only then and tries the kernels. */
async function rehearse(): Promise<void> {
  const options = { maxModelLen: 64, maxNumSeqs: 1, numThreads: 1, weightCache: "off" } as const;
  await using model = await LLM.load(embeddedModelFolder(), options);
  await model.generate("a", { maxTokens: 1 });
}

async function firstLine(): Promise<string | undefined> {
  let text = "";
  for await (const chunk of process.stdin) {
    text += String(chunk);
    if (text.includes("\n")) return text;
  }
  return undefined;
}
