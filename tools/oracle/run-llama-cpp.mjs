#!/usr/bin/env node
// What llama.cpp says about a GGUF file: greedy tokens after a fixed prompt, and each step's best log-probabilities.
// usage: [NODE_LLAMA_CPP_DIR=FOLDER] node run-llama-cpp.mjs [--print] FILE.gguf|FOLDER ...
// Writes FILE.json beside each FILE.gguf, or with --print one JSON line each. Exits with 3 when node-llama-cpp is not found.
import { readdirSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

const PROMPT_TOKENS = 24;
const GREEDY_TOKENS = 64;
const TOP = 8;
const BYTE_TOKENS = 256;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { print: { type: "boolean", default: false } },
});
const files = positionals.flatMap((path) =>
  statSync(path).isDirectory()
    ? readdirSync(path)
        .filter((name) => name.endsWith(".gguf"))
        .sort()
        .map((name) => join(path, name))
    : [path],
);

const { getLlama } = await importNodeLlamaCpp();
const llama = await getLlama({ gpu: false, build: "never", logLevel: "error", maxThreads: 1 });
for (const file of files) {
  const json = JSON.stringify(await greedy(file));
  if (values.print) process.stdout.write(`${json}\n`);
  else writeFileSync(file.replace(/\.gguf$/, ".json"), `${json}\n`);
}
process.exit(0);

async function importNodeLlamaCpp() {
  const folder = process.env.NODE_LLAMA_CPP_DIR;
  const entry =
    folder === undefined
      ? "node-llama-cpp"
      : pathToFileURL(join(resolve(folder), "node_modules/node-llama-cpp/dist/index.js")).href;
  try {
    return await import(entry);
  } catch (error) {
    process.stderr.write(
      `node-llama-cpp cannot be imported (${error.code ?? error.message}); set NODE_LLAMA_CPP_DIR to a folder whose node_modules holds it\n`,
    );
    process.exit(3);
  }
}

async function greedy(modelPath) {
  const model = await llama.loadModel({ modelPath });
  const context = await model.createContext({ contextSize: 256, batchSize: 64, threads: 1 });
  const sequence = context.getSequence();
  const prompt = makePrompt();
  const tokens = [];
  const top = [];
  let input = prompt;
  for (let step = 0; step < GREEDY_TOKENS; step++) {
    const items = [...input.slice(0, -1), [input.at(-1), { generateNext: { logits: true } }]];
    const outputs = await sequence.controlledEvaluate(items);
    const best = logProbabilities(outputs.at(-1).next.logits).slice(0, TOP);
    tokens.push(best[0].token);
    top.push(best.map(({ token, logprob }) => [token, Number(logprob.toFixed(6))]));
    input = [best[0].token];
  }
  await context.dispose();
  await model.dispose();
  return { prompt, greedy: tokens, top };
}

/** Byte tokens from a fixed xorshift stream. */
function makePrompt() {
  let state = 42;
  return Array.from({ length: PROMPT_TOKENS }, () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % BYTE_TOKENS;
  });
}

/** Best first; equal values by lower id, as a greedy sampler picks them. */
function logProbabilities(logits) {
  const entries = [...logits].map(([token, logit]) => ({ token: Number(token), logit }));
  const max = entries.reduce((most, { logit }) => Math.max(most, logit), -Infinity);
  const total = Math.log(entries.reduce((sum, { logit }) => sum + Math.exp(logit - max), 0));
  return entries
    .map(({ token, logit }) => ({ token, logprob: logit - max - total }))
    .sort((a, b) => b.logprob - a.logprob || a.token - b.token);
}
