import { dirname, join } from "node:path";

/** Where Octavo keeps the packed weights of a model, when it may. */
export function packedFolder(modelPath: string): string {
  return join(dirname(modelPath), "packed");
}
