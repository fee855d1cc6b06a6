import { parentPort, workerData } from "node:worker_threads";
import { OctavoError } from "@octavo/protocol/errors";
import { decodeImage } from "./decode-image.js";
import { patchesOf, pixelsOf } from "./patches.js";
import type { PrepareReply, PrepareTask } from "./prepare-image.js";

const { bytes, processing, layout } = workerData as PrepareTask;

const send = (reply: PrepareReply, moved: ArrayBuffer[] = []): void => parentPort?.postMessage(reply, moved);

try {
  const patches = patchesOf(pixelsOf(await decodeImage(bytes), processing), layout);
  send({ patches }, [patches.buffer as ArrayBuffer]);
} catch (thrown) {
  const { code, message } = OctavoError.from(thrown);
  send({ failure: { code, message } });
}
