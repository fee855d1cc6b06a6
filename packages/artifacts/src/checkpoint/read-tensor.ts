import { open } from "node:fs/promises";
import { OctavoError } from "@octavo/protocol/errors";
import { ArtifactFile } from "@octavo/text/files/artifact-file";

/** Where bytes lie. */
interface ByteRange {
  readonly name: string;
  readonly path: string;
  readonly offset: number;
  readonly byteLength: number;
}

/** A tensor's bytes, in memory of their own that starts at an aligned address. */
export async function readTensor(tensor: ByteRange): Promise<Uint8Array> {
  const file = await open(tensor.path);
  try {
    const data = new Uint8Array(tensor.byteLength);
    let filled = 0;
    while (filled < data.byteLength) {
      const { bytesRead } = await file.read(data, filled, data.byteLength - filled, tensor.offset + filled);
      if (bytesRead === 0)
        throw new OctavoError("artifact_invalid", `${tensor.path} ends within tensor "${tensor.name}".`);
      filled += bytesRead;
    }
    return data;
  } finally {
    await file.close();
  }
}

/** The same for a small tensor that decides how others are read. */
export function readTensorNow(tensor: ByteRange): Uint8Array {
  const file = ArtifactFile.open(tensor.path);
  try {
    return Uint8Array.from(file.read(tensor.offset, tensor.byteLength));
  } finally {
    file[Symbol.dispose]();
  }
}
