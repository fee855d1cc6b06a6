import { parentPort } from "node:worker_threads";
import type { EncodeTask } from "./encode-pool.js";
import { encodeStretch } from "./encoded-stretch.js";
import { ggmlTypes } from "./ggml-types.js";

parentPort?.on("message", ({ type, values }: EncodeTask) => {
  const { bytes, error } = encodeStretch(ggmlTypes[type], values);
  parentPort?.postMessage({ bytes, error }, [bytes.buffer as ArrayBuffer]);
});
