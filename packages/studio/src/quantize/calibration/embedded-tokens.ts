import { open } from "node:fs/promises";
import { artifactInvalid } from "@octavo/text/files/artifact-file";
import { convertFloats } from "@octavo/artifacts/program/float-conversion";
import { type ModelPlan } from "@octavo/artifacts/program/model-plan";
import { OctavoError } from "@octavo/protocol";
import { floatType } from "../source/source-model.js";
import type { SequenceState } from "./hidden-states.js";

/** What flows into the first layer: rows of the embedding, read one by one, since the whole of it may be large. */
export async function embedTokens(plan: ModelPlan, tokens: Int32Array): Promise<SequenceState> {
  const op = plan.ops.find((candidate) => candidate.op === "embedding");
  const source = op?.op === "embedding" ? op.weight.sources[0] : undefined;
  if (op?.op !== "embedding" || source === undefined) {
    throw new OctavoError("internal_error", "The model's program has no embedding.");
  }
  const width = op.weight.cols;
  const rowBytes = source.byteLength / op.weight.rows;
  const values = new Float32Array(tokens.length * width);
  const file = await open(source.path);
  try {
    const row = new Uint8Array(rowBytes);
    for (const [i, token] of tokens.entries()) {
      const { bytesRead } = await file.read(row, 0, rowBytes, source.offset + token * rowBytes);
      if (bytesRead < rowBytes) throw artifactInvalid(source.path, `ends within tensor "${source.name}"`);
      const single = convertFloats(row, floatType(source), "f32");
      values.set(new Float32Array(single.slice().buffer), i * width);
    }
  } finally {
    await file.close();
  }
  const { scale } = op;
  if (scale !== undefined) for (let i = 0; i < values.length; i++) values[i] = values[i]! * scale;
  return new Map([[op.out.buffer, values]]);
}
