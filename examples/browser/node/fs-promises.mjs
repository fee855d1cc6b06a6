// `node:fs/promises` over the fetched files.
import { find, namesIn } from "./files.mjs";

export const stat = async (path) => find(path);
export const readdir = async (path) => (find(path), namesIn(path));

export async function open(path) {
  const { bytes } = find(path);
  return {
    read: async (target, offset, length, position) => {
      const part = bytes.subarray(position, position + length);
      target.set(part, offset);
      return { bytesRead: part.length, buffer: target };
    },
    close: async () => undefined,
  };
}
