import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { openCheckpoint } from "@octavo/engine";
import { compileChatTemplate, createTokenizer } from "@octavo/engine/parts";
import { ModelRunner } from "@octavo/engine/testing";
import { createCpuBackend } from "@octavo/kernels";

export const octavoMini = fileURLToPath(new URL("../../../../../models/octavo-mini", import.meta.url));
const fixture = (name: string): string =>
  fileURLToPath(new URL(`../../../fixtures/${name}`, import.meta.url));

/** Conversations of octavo-mini's world: its generator's training split, and the held-out one. */
export const calibrationFile = fixture("calibration.jsonl");
const heldOutFile = fixture("held-out.jsonl");

/** Takes every fourth held-out conversation and position: each costs a softmax over the vocabulary, and memory for the result. */
const everyConversation = 4;
const everyPosition = 4;

/** Log-probabilities of every fourth position of every fourth held-out conversation, under a model. */
export async function heldOutLogprobs(path: string): Promise<Float32Array[]> {
  const checkpoint = await openCheckpoint(path);
  const { chatTemplate = "" } = checkpoint.tokenizer.config;
  const template = compileChatTemplate(chatTemplate, checkpoint.tokenizer.config);
  const tokenizer = createTokenizer(checkpoint.tokenizer);
  const conversations = readFileSync(heldOutFile, "utf8")
    .trim()
    .split("\n")
    .map((line) => template.render({ ...(JSON.parse(line) as { messages: [] }), addGenerationPrompt: false }))
    .map((text) => Array.from(tokenizer.encode(text, { addSpecialTokens: false })).slice(0, 160))
    .filter((_, index) => index % everyConversation === 0);
  using backend = createCpuBackend({ numThreads: 2 });
  using runner = await ModelRunner.load(backend, checkpoint, 256, "f32");
  const rows: Float32Array[] = [];
  for (const tokens of conversations) {
    runner.reset();
    for (const [at, logits] of (await runner.logits(tokens)).entries())
      if (at % everyPosition === 0) rows.push(logSoftmax(logits));
  }
  return rows;
}

/** Mean Kullback-Leibler divergence of a model's distributions from the original's, in nats per token. */
export function meanDivergence(original: readonly Float32Array[], other: readonly Float32Array[]): number {
  let sum = 0;
  for (const [at, expected] of original.entries()) {
    const found = other[at]!;
    for (let id = 0; id < expected.length; id++) {
      sum += Math.exp(expected[id]!) * (expected[id]! - found[id]!);
    }
  }
  return sum / original.length;
}

function logSoftmax(logits: Float32Array): Float32Array {
  let most = Number.NEGATIVE_INFINITY;
  for (const logit of logits) most = Math.max(most, logit);
  let sum = 0;
  for (const logit of logits) sum += Math.exp(logit - most);
  const shift = most + Math.log(sum);
  const logprobs = new Float32Array(logits.length);
  for (let id = 0; id < logits.length; id++) logprobs[id] = logits[id]! - shift;
  return logprobs;
}
