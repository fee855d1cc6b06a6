import type { EvalCase } from "../../cases/eval-case.js";
import type { ByteSource } from "../byte-source.js";
import type { Dataset } from "../dataset.js";

/** Text in pieces of the given sizes, over and over; each piece is overwritten once the next is asked for. */
export function textSource(text: string, pieceSizes: readonly number[], path = "cases.txt"): ByteSource {
  const bytes = Buffer.from(text);
  return {
    path,
    async *bytes() {
      for (let start = 0, index = 0; start < bytes.length; index++) {
        const size = pieceSizes[index % pieceSizes.length] ?? bytes.length;
        const piece = Buffer.from(bytes.subarray(start, start + size));
        yield await Promise.resolve(piece);
        piece.fill(0xff);
        start += size;
      }
    },
  };
}

export async function collected(dataset: Dataset): Promise<EvalCase[]> {
  const cases: EvalCase[] = [];
  for await (const evalCase of dataset.cases()) cases.push(evalCase);
  return cases;
}
