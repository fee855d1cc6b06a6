// `node:fs` over the fetched files, which are only read.
import { find, namesIn } from "./files.mjs";

export const constants = { O_RDONLY: 0 };
const open = [];

export function openSync(path) {
  return open.push(find(path)) - 1;
}

export function closeSync(descriptor) {
  open[descriptor] = undefined;
}

export const fstatSync = (descriptor) => open[descriptor];

export function readSync(descriptor, target, offset, length, position) {
  const part = open[descriptor].bytes.subarray(position, position + length);
  target.set(part, offset);
  return part.length;
}

export const existsSync = (path) => find(path, { throwIfNoEntry: false }) !== undefined;
export const statSync = (path, options) => find(path, options);
export const readdirSync = (path) => (find(path), namesIn(path));

export function readFileSync(path, options) {
  const bytes = Buffer.from(find(path).bytes);
  return options === undefined ? bytes : bytes.toString(options.encoding ?? options);
}
