import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { cases, type Split } from "@octavo/octavo-mini";
import { quantize } from "@octavo/quantize";
import type { Format } from "./formats.js";

/** A model on disk and the bytes of its weights there. */
export interface Artifact {
  readonly path: string;
  readonly weightBytes: number;
}

/** Conversations of octavo-mini's world as JSON lines of `messages`, `tools` and `gold`, of every family in turn. */
export function writeConversations(path: string, split: Split, count: number, seed: string): void {
  const streams = (["extraction", "tools", "grounded", "chat"] as const).map((task) =>
    cases({ task, split, seed }),
  );
  const lines = Array.from({ length: count }, (_, index) => {
    const { messages, gold, tools } = streams[index % streams.length]!.next().value;
    return split === "train"
      ? { messages: [...messages, { role: "assistant", content: gold }], tools }
      : { messages, tools, gold };
  });
  writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
}

/** The artifact of a format in `folder`, made when it is not there; its name follows the source's weights. */
export async function makeArtifact(
  source: string,
  format: Format,
  folder: string,
  calibration: string | undefined,
): Promise<Artifact> {
  if (format.options === undefined) return { path: source, weightBytes: weightBytes(source) };
  const { method, bits } = format.options;
  const name = [
    basename(source),
    digestOf(source),
    method.replace(":", "-"),
    ...(bits === undefined ? [] : [bits]),
  ];
  const out = join(folder, name.join("-"));
  if (!existsSync(out)) {
    mkdirSync(folder, { recursive: true });
    await quantize(source, {
      ...format.options,
      out,
      ...(format.isCalibrated && calibration !== undefined && { calibration }),
      ...(format.isCalibrated && calibration === undefined && method !== "int8" && { roundToNearest: true }),
    });
  }
  const ggufFile = readdirSync(out).find((file) => file.endsWith(".gguf"));
  return { path: ggufFile === undefined ? out : join(out, ggufFile), weightBytes: weightBytes(out) };
}

function weightBytes(folder: string): number {
  return readdirSync(folder)
    .filter((file) => /\.(?:safetensors|gguf)$/.test(file))
    .reduce((sum, file) => sum + statSync(join(folder, file)).size, 0);
}

/** So that no artifact of other weights is taken for this model's. */
function digestOf(folder: string): string {
  const hash = createHash("sha256");
  for (const file of readdirSync(folder).toSorted()) {
    if (/\.(?:safetensors|json|jinja)$/.test(file)) hash.update(readFileSync(join(folder, file)));
  }
  return hash.digest("hex").slice(0, 8);
}
