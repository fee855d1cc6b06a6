import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { cases, type Split } from "@octavo/octavo-mini";
import { runMeasured } from "../cpu/run/measured-process.js";
import type { Format } from "./formats.js";

const cli = fileURLToPath(new URL("../../../packages/cli/dist/main.js", import.meta.url));

/** A model on disk and the bytes of its weights there. */
export interface Artifact {
  readonly path: string;
  readonly weightBytes: number;
  /** Present where it was made just now. */
  readonly making?: Making;
}

/** What `octavo quantize` took, in a process of its own. */
export interface Making {
  readonly seconds: number;
  /** Most resident memory, the pages of mapped files counted. */
  readonly peakBytes: number;
  /** One layer at a time is in memory, so a model is held against half its bytes and 2 GB. */
  readonly target: { readonly on: "peakBytes"; readonly atMost: number };
  readonly isMet: boolean;
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
  const isThere = existsSync(out);
  const making = isThere ? undefined : await makeIn(out, source, format, calibration);
  const ggufFile = readdirSync(out).find((file) => file.endsWith(".gguf"));
  return {
    path: ggufFile === undefined ? out : join(out, ggufFile),
    weightBytes: weightBytes(out),
    ...(making !== undefined && { making }),
  };
}

async function makeIn(
  out: string,
  source: string,
  { options, isCalibrated }: Format,
  calibration: string | undefined,
): Promise<Making> {
  mkdirSync(dirname(out), { recursive: true });
  const { method = "", bits } = options ?? {};
  const flags = [
    "--method",
    method,
    "--out",
    out,
    ...(bits === undefined ? [] : ["--bits", String(bits)]),
    ...(isCalibrated && calibration !== undefined ? ["--calibration", calibration] : []),
    ...(isCalibrated && calibration === undefined && method !== "int8" ? ["--round-to-nearest"] : []),
  ];
  const { wallMs, peakBytes = Number.NaN } = await runMeasured({
    command: process.execPath,
    args: [cli, "quantize", source, ...flags],
  });
  const target = { on: "peakBytes", atMost: 0.5 * weightBytes(source) + 2e9 } as const;
  return { seconds: wallMs / 1000, peakBytes, target, isMet: peakBytes <= target.atMost };
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
