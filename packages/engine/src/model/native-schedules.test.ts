import { fixtureAdapter, fixtureCheckpoint, fixtureGguf } from "@octavo/artifacts/testing/model-fixtures";
import { openNativeModel } from "../testing/oracles/native-model.js";
import { scheduleProperties } from "../testing/schedules/schedule-properties.js";

/** All of them take a minute of processor time: `npm run test:all -- --full`. */
const options = { numRuns: process.env["OCTAVO_TEST_FULL"] === undefined ? 4 : 12 };

scheduleProperties(
  "f32 with llama3 scaling",
  () => openNativeModel(fixtureCheckpoint("llama3"), "f32"),
  options,
);
scheduleProperties("bf16", () => openNativeModel(fixtureCheckpoint("llama3-bf16"), "bf16"), options);
scheduleProperties(
  "f32 with a sliding window",
  () => openNativeModel(fixtureCheckpoint("mistral"), "f16"),
  options,
);
scheduleProperties(
  "f16 with query and key norms",
  () => openNativeModel(fixtureCheckpoint("qwen3-f16"), "f16"),
  options,
);
scheduleProperties(
  "a mixture of experts with a shared one",
  () => openNativeModel(fixtureCheckpoint("qwen2-moe"), "f16"),
  options,
);
scheduleProperties("GGUF q4_0", () => openNativeModel(fixtureGguf("llama3-q4_0"), "f16"), options);
scheduleProperties(
  "experts in MXFP4, attention sinks",
  () => openNativeModel(fixtureCheckpoint("gpt-oss"), "bf16"),
  options,
);
scheduleProperties(
  "GGUF q4_0, a mixture of experts",
  () => openNativeModel(fixtureGguf("qwen3moe-q4_0"), "int8"),
  options,
);
scheduleProperties(
  "GGUF q4_0, packed between steps",
  () => openNativeModel(fixtureGguf("llama3-q4_0"), "f16", [], { packLaterFrom: 0 }),
  options,
);
scheduleProperties(
  "Gated DeltaNet beside attention",
  () => openNativeModel(fixtureCheckpoint("qwen3-5"), "f32"),
  { numRuns: 3 * options.numRuns },
);
scheduleProperties(
  "Mamba-2 beside attention in every layer",
  () => openNativeModel(fixtureCheckpoint("falcon-h1"), "f32"),
  options,
);
scheduleProperties(
  "short convolutions, experts chosen by biased sigmoids",
  () => openNativeModel(fixtureGguf("lfm2moe-f16"), "bf16"),
  options,
);
scheduleProperties(
  "latent attention",
  () => openNativeModel(fixtureCheckpoint("deepseek-v3"), "f32"),
  options,
);
scheduleProperties(
  "latent attention over bytes",
  () => openNativeModel(fixtureCheckpoint("glm4-moe-lite"), "int8"),
  options,
);
scheduleProperties(
  "layers that share keys and values, in heads of two sizes",
  () => openNativeModel(fixtureCheckpoint("gemma4-small"), "int8"),
  options,
);
scheduleProperties(
  "chunks, layers without rotation, experts whose inputs are weighed",
  () => openNativeModel(fixtureCheckpoint("llama4"), "f16"),
  options,
);
scheduleProperties("GGUF q4_k", () => openNativeModel(fixtureGguf("llama-q4_k"), "bf16"), options);

const adapters = ["llama3-all", "llama3-rslora", "llama3-upper"].map(fixtureAdapter);
scheduleProperties(
  "f32 under adapters",
  () => openNativeModel(fixtureCheckpoint("llama3"), "f32", adapters),
  options,
);
scheduleProperties(
  "GGUF q8_0 under adapters",
  () => openNativeModel(fixtureGguf("llama3-q8_0"), "bf16", adapters),
  options,
);
