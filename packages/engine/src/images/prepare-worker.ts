import { parentPort, workerData } from "node:worker_threads";
import type { ImageProcessing } from "@octavo/artifacts/vision/image-processing";
import { OctavoError } from "@octavo/protocol/errors";
import { decodeImage } from "./decode-image.js";
import type { Raster } from "./resize.js";
import { budgetSize, channelsLast, cut, patchesOf, pixelsOf, shapedSize } from "./patches.js";
import type { PreparedImage, PrepareReply, PrepareTask } from "./prepare-image.js";

const send = (reply: PrepareReply, moved: ArrayBuffer[] = []): void => parentPort?.postMessage(reply, moved);

async function prepare({ bytes, square, shaped, budgeted }: PrepareTask): Promise<PreparedImage> {
  const image = await decodeImage(bytes);
  if (square !== undefined) {
    const { processing, layout } = square;
    const { patchesPerSide: side } = layout;
    return { patches: patchesOf(pixelsOf(image, processing), layout), grid: { rows: side, columns: side } };
  }
  if (budgeted !== undefined) {
    const { processing, layout } = budgeted;
    const prepared = cutAt(image, budgetSize(image, processing), processing, { ...layout, moments: 1 });
    return { ...prepared, patches: channelsLast(prepared.patches, layout.patchSize) };
  }
  if (shaped === undefined) throw new OctavoError("internal_error", "An image was to be cut in no way.");
  const { processing, layout } = shaped;
  return cutAt(image, shapedSize(image, processing), processing, layout);
}

function cutAt(
  image: Raster,
  size: Pick<Raster, "width" | "height">,
  processing: Omit<ImageProcessing, "width" | "height">,
  layout: { readonly patchSize: number; readonly poolSize: number; readonly moments: number },
): PreparedImage {
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
