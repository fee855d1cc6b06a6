#!/usr/bin/env node
// What llama.cpp's vocabularies make of the hostile texts of the engine's tests, special tokens recognised, none added.
// usage: NODE_LLAMA_CPP_DIR=FOLDER node run-llama-cpp.mjs FIXTURES   (after `npm run build`)
// Writes gguf-ids.json in the folder of the .gguf files: by file, the ids of each text.
import { readdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const { hostileTexts } = await import("../../../packages/text/dist/tokenizer/testing/contenders.js");
const folder = process.argv[2];
const modules = join(
  resolve(process.env.NODE_LLAMA_CPP_DIR ?? "."),
  "node_modules/node-llama-cpp/dist/index.js",
);
const { getLlama } = await import(pathToFileURL(modules).href);
const llama = await getLlama({ gpu: false, build: "never", logLevel: "error", maxThreads: 1 });
const result = {};
for (const name of readdirSync(folder)
  .filter((file) => file.endsWith(".gguf"))
  .sort()) {
  const model = await llama.loadModel({ modelPath: join(folder, name), vocabOnly: true });
  // the longest runs would make the file large and show nothing more
  result[name.replace(/\.gguf$/, "")] = hostileTexts
    .filter((text) => text.length <= 400)
    .map((text) => [...model.tokenize(text.toWellFormed(), true)]);
  await model.dispose();
}
writeFileSync(join(folder, "gguf-ids.json"), `${JSON.stringify(result)}\n`);
process.exit(0);
