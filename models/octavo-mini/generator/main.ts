import { createWriteStream } from "node:fs";
import { once } from "node:events";
import { parseArgs } from "node:util";
import { cases } from "./families.js";
import { taskNames } from "./task.js";
import type { Split } from "./split.js";

const usage = `Writes golden cases as JSON lines.

  --task NAME        ${taskNames.join(" | ")}
  --split NAME       train | heldout (default heldout)
  --count N          how many (default 100)
  --seed TEXT        another seed gives other cases (default 1)
  --context-tokens N prompt length for retrieval
  --out FILE         default: standard output`;

const { values } = parseArgs({
  options: {
    task: { type: "string" },
    split: { type: "string", default: "heldout" },
    count: { type: "string", default: "100" },
    seed: { type: "string", default: "1" },
    "context-tokens": { type: "string" },
    out: { type: "string" },
    help: { type: "boolean", default: false },
  },
});

const task = taskNames.find((name) => name === values.task);
const split = (["train", "heldout"] satisfies Split[]).find((name) => name === values.split);
const count = Number(values.count);
const contextTokens = values["context-tokens"] === undefined ? undefined : Number(values["context-tokens"]);

if (values.help || task === undefined || split === undefined || !Number.isInteger(count)) {
  process.stderr.write(`${usage}\n`);
  process.exit(values.help ? 0 : 2);
}

const out = values.out === undefined ? process.stdout : createWriteStream(values.out);
const stream = cases({
  task,
  split,
  seed: values.seed,
  ...(contextTokens === undefined ? {} : { contextTokens }),
});
for (let i = 0; i < count; i++) {
  if (!out.write(`${JSON.stringify(stream.next().value)}\n`)) await once(out, "drain");
}
if (out !== process.stdout) {
  out.end();
  await once(out, "finish");
}
