import { closeSync, fstatSync, openSync, readSync, statSync } from "node:fs";
import { OctavoError } from "@octavo/protocol/errors";
import type { OpenFile } from "../handles.js";

/** A file whose ranges are read when a matrix is packed; nothing keeps a copy. */
export function openFile(path: string): { readonly file: OpenFile; readonly byteLength: number } {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) throw new OctavoError("artifact_not_found", `There is no file ${path}.`);
  if (!found.isFile()) throw new OctavoError("artifact_invalid", `${path} is not a file.`);
  const descriptor = openSync(path, "r");
  const { size } = fstatSync(descriptor);
  return {
    byteLength: size,
    file: {
      path,
      read: (offset, byteLength) => {
        const bytes = new Uint8Array(byteLength);
        let done = 0;
        while (done < byteLength) {
          const count = readSync(descriptor, bytes, done, byteLength - done, offset + done);
          if (count === 0)
            throw new OctavoError("artifact_invalid", `${path} ends before byte ${offset + byteLength}.`);
          done += count;
        }
        return bytes;
      },
      close: () => closeSync(descriptor),
    },
  };
}
