import { createWebGpuBackend } from "@octavo/kernels-webgpu";
import { openTestGpu } from "@octavo/kernels-webgpu/testing/software-gpu";
import { LLM } from "../llm/llm.js";

/** A process of its own on the test GPU: answers one prompt again and again, and tells each answer, until it is told to end. */
const [, , path = "", prompt = "[]", maxTokens = "1"] = process.argv;
const gpu = await openTestGpu();
if (typeof gpu === "string") throw new Error(gpu);
const llm = await LLM.load(path, {
  backend: createWebGpuBackend(gpu, { ownsGpu: true }),
  maxModelLen: 64,
  maxNumSeqs: 1,
  kvCacheMemoryBytes: 1 << 20,
  enablePrefixCaching: false,
});
const over = new AbortController();
process.once("message", () => over.abort());
while (!over.signal.aborted) {
  const { sequences } = await llm.generate(Int32Array.from(JSON.parse(prompt) as number[]), {
    temperature: 0,
    ignoreEos: true,
    maxTokens: Number(maxTokens),
  });
  process.send?.(sequences[0]?.tokens);
}
await llm[Symbol.asyncDispose]();
process.exit(0);
