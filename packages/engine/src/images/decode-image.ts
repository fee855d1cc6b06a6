import { OctavoError } from "@octavo/protocol/errors";
import type { Raster } from "./resize.js";

/** Decoded, at three bytes each: more than any camera of today gives. */
export const mostPixels = 1 << 26;

const signatures: readonly (readonly [name: string, test: (bytes: Buffer) => boolean])[] = [
  ["PNG", (bytes) => bytes.readUInt32BE(0) === 0x89504e47],
  ["JPEG", (bytes) => bytes.readUIntBE(0, 3) === 0xffd8ff],
  ["GIF", (bytes) => bytes.toString("latin1", 0, 4) === "GIF8"],
  [
    "WebP",
    (bytes) => bytes.toString("latin1", 0, 4) === "RIFF" && bytes.toString("latin1", 8, 12) === "WEBP",
  ],
];

/**
 * The first frame of a PNG, JPEG, WebP or GIF in RGB, turned as its EXIF says; transparency is left out, as by Pillow's
 * `convert("RGB")`, and so are colour profiles. Nothing else is handed to the decoder.
 * @throws OctavoError `invalid_request`, or `native_unavailable` without the package `sharp`
 */
export async function decodeImage(bytes: Uint8Array): Promise<Raster> {
  const view = recognised(bytes);
  const sharp = await loadSharp();
  try {
    const { data, info } = await sharp(view, {
      limitInputPixels: mostPixels,
      failOn: "error",
      ignoreIcc: true,
      autoOrient: true,
    })
      .toColourspace("srgb")
      .removeAlpha()
      .raw({ depth: "uchar" })
      .toBuffer({ resolveWithObject: true });
    const { width, height } = info;
    if (info.channels !== 3) throw invalid(`The image has ${info.channels} channels after decoding.`);
    return { width, height, channels: 3, data };
  } catch (cause) {
    throw undecodable(cause);
  }
}

/** Width and height as `decodeImage` will give them, from the image's header. Errors as there. */
export async function decodedSizeOf(bytes: Uint8Array): Promise<Pick<Raster, "width" | "height">> {
  const view = recognised(bytes);
  const sharp = await loadSharp();
  try {
    const { autoOrient } = await sharp(view, { limitInputPixels: mostPixels }).metadata();
    const { width, height } = autoOrient;
    if (width * height > mostPixels)
      throw new OctavoError("invalid_request", `The image has more than ${mostPixels} pixels.`);
    return { width, height };
  } catch (cause) {
    throw undecodable(cause);
  }
}

function recognised(bytes: Uint8Array): Buffer {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (view.length >= 12 && signatures.some(([, test]) => test(view))) return view;
  throw invalid(`The image is none of ${signatures.map(([name]) => name).join(", ")}.`);
}

function undecodable(cause: unknown): OctavoError {
  if (cause instanceof OctavoError) return cause;
  const problem = cause instanceof Error ? cause.message.split("\n")[0] : String(cause);
  return invalid(
    /pixel limit/.test(problem ?? "")
      ? `The image has more than ${mostPixels} pixels.`
      : `The image cannot be decoded: ${problem?.slice(0, 200)}`,
    cause,
  );
}

async function loadSharp(): Promise<typeof import("sharp").default> {
  try {
    return (await import("sharp")).default;
  } catch (cause) {
    throw new OctavoError(
      "native_unavailable",
      "Images are decoded by the package sharp, which is not installed: npm install sharp@0.35.5",
      { cause },
    );
  }
}

function invalid(message: string, cause?: unknown): OctavoError {
  return new OctavoError("invalid_request", message, { cause });
}
