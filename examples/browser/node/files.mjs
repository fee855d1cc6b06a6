// The files that the page has fetched, by path: all that the engine finds when it looks for files.

/** Bytes by path. */
const files = new Map();

export function addFile(path, bytes) {
  files.set(path, bytes);
}

/** As Node has it: undefined, or an error with the code ENOENT. */
export function find(path, { throwIfNoEntry = true } = {}) {
  const bytes = files.get(path);
  if (bytes !== undefined) return { bytes, ...stats(bytes.length) };
  if (namesIn(path).length > 0) return stats(undefined);
  if (throwIfNoEntry)
    throw Object.assign(new Error(`ENOENT: no such file or folder, ${path}`), { code: "ENOENT" });
  return undefined;
}

export function namesIn(folder) {
  const start = `${folder.replace(/\/$/, "")}/`;
  const below = [...files.keys()].filter((path) => path.startsWith(start));
  return [...new Set(below.map((path) => path.slice(start.length).split("/")[0]))];
}

function stats(size) {
  return { size: size ?? 0, isFile: () => size !== undefined, isDirectory: () => size === undefined };
}
