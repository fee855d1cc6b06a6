import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { evaluatorTable, observeSent, type ScheduledCase, sendOpenLoop } from "@octavo/evals";
import { OctavoError } from "@octavo/protocol";
import { Random } from "@octavo/statistics";
import { OctavoProcesses } from "../planted-load/octavo-processes.js";
import { goldenCases } from "../planted-faults/golden-cases.js";
import type { Misconfiguration, PlantedRequest } from "./plants.js";

const octavo = fileURLToPath(new URL("../../../packages/cli/dist/main.js", import.meta.url));
const { signal } = new AbortController();

/** `octavo` in a process of its own: what it printed. Throws where it fails. */
export async function runCommand(args: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, [octavo, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  let [out, err] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (err += text));
  const [code] = await once(child, "close");
  if (code !== 0)
    throw new OctavoError("internal_error", `octavo ${args.join(" ")} ended with ${code}: ${err}`);
  return out;
}

export interface PlantFiles {
  readonly config: string;
  readonly spans: string;
  readonly state: string;
}

/** Serves a plant's traffic as it is set up, and leaves its flags and its spans, with scores where its answers are scored. */
export async function recordPlant(
  plant: Misconfiguration,
  folder: string,
  seed: number,
): Promise<PlantFiles> {
  const files = {
    config: join(folder, "serve.yaml"),
    spans: join(folder, "spans.jsonl"),
    state: join(folder, "feed.json"),
  };
  const settings = { threads: 1, ...plant.settings };
  const lines = Object.entries(settings).map(([name, value]) => `${name}: ${JSON.stringify(value)}\n`);
  await writeFile(files.config, lines.join(""));
  const store = join(folder, "store");
  const evaluators = evaluatorTable.create(plant.evaluator === undefined ? [] : [plant.evaluator]);
  const scores = new Map<string, Readonly<Record<string, number | null>>>();
  {
    await using processes = new OctavoProcesses();
    const flags = ["--config", files.config, "--trace-store", store, "--trace-content", "full"];
    const target = await processes.serve("planted", flags);
    const golden =
      plant.golden === undefined ? [] : await goldenCases(seed, [{ task: plant.golden, count: 16 }]);
    const schedule = plant.traffic(new Random(seed), golden).map(scheduled);
    const sent = await sendOpenLoop(target, schedule, { signal });
    const seen = await observeSent(
      sent.map((one) => ({ ...one, condition: "recorded" })),
      { evaluators, signal },
    );
    for (const [index, { answer }] of sent.entries())
      if (answer.responseId !== undefined) scores.set(answer.responseId, seen[index]!.scores);
    // the store writes once a second
    await sleep(1500);
  }
  // content stands beside the spans, of answered calls alone
  const [plainRows, fullRows] = await Promise.all([rowsOf(store), rowsOf(join(store, "content"))]);
  const full = new Map(fullRows.map((row) => [row["span_id"], row]));
  const rows = plainRows.map((row): object => {
    const scored = Object.entries(scores.get(String(row["response_id"])) ?? {});
    return {
      ...(full.get(row["span_id"]) ?? row),
      ...Object.fromEntries(scored.map(([name, score]) => [`octavo.score.${name}`, score])),
    };
  });
  await writeFile(
    files.spans,
    rows
      .slice(1)
      .map((row) => `${JSON.stringify(row)}\n`)
      .join(""),
  );
  return files;
}

function scheduled(request: PlantedRequest, index: number): ScheduledCase {
  const { content, atMs, tenant, maxTokens, asked } = request;
  return {
    atMs,
    ...(tenant !== undefined && { tenant }),
    evalCase: asked ?? {
      id: String(index),
      messages: [{ role: "user", content }],
      tools: [],
      context: undefined,
      expected: {},
      parameters: {
        maxTokens,
        temperature: 0,
        extraBody: { min_tokens: maxTokens },
      },
      tenant,
      cluster: undefined,
      tags: [],
      metadata: {},
    },
  };
}

async function rowsOf(folder: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const names = await readdir(folder).catch(() => []);
  const texts = await Promise.all(
    names.filter((name) => name.endsWith(".jsonl")).map((name) => readFile(join(folder, name), "utf8")),
  );
  return texts.flatMap((text) =>
    text
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>),
  );
}
