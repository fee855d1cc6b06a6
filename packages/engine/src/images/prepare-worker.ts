import { parentPort, workerData } from "node:worker_threads";
import { OctavoError } from "@octavo/protocol/errors";
import { decodeImage } from "./decode-image.js";
import { cut, patchesOf, pixelsOf, shapedSize } from "./patches.js";
import type { PreparedImage, PrepareReply, PrepareTask } from "./prepare-image.js";

const send = (reply: PrepareReply, moved: ArrayBuffer[] = []): void => parentPort?.postMessage(reply, moved);

async function prepare({ bytes, square, shaped }: PrepareTask): Promise<PreparedImage> {
  const image = await decodeImage(bytes);
  if (square !== undefined) {
    const { processing, layout } = square;
    const { patchesPerSide: side } = layout;
    return { patches: patchesOf(pixelsOf(image, processing), layout), grid: { rows: side, columns: side } };
  }
  if (shaped === undefined) throw new OctavoError("internal_error", "An image was to be cut in no way.");
  const { processing, layout } = shaped;
  const size = shapedSize(image, processing);
  const grid = { rows: size.height / layout.patchSize, columns: size.width / layout.patchSize };
  return { patches: cut(pixelsOf(image, { ...processing, ...size }), grid, layout), grid };
}

try {
  const prepared = await prepare(workerData as PrepareTask);
  send(prepared, [prepared.patches.buffer as ArrayBuffer]);
} catch (thrown) {
  const { code, message } = OctavoError.from(thrown);
  send({ failure: { code, message } });
}
