import { parentPort } from "node:worker_threads";
import type { StretchTask } from "./encode-pool.js";
import { encodeStretch } from "./encoded-stretch.js";
import { ggmlTypes } from "./ggml-types.js";

parentPort?.on("message", ({ type, values, importance }: StretchTask) => {
  const { bytes, error } = encodeStretch(ggmlTypes[type], values, importance);
  parentPort?.postMessage({ bytes, error }, [bytes.buffer as ArrayBuffer]);
});
