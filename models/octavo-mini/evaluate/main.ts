import { writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { ChatClient } from "./client.js";
import { formatTable, rewriteCard } from "./report.js";
import { runSuite } from "./suite.js";

const folder = new URL("../../", import.meta.url);
const usage = `Asks a server the held-out cases and prints the share of right answers.

  --url URL         the server's OpenAI base, such as http://127.0.0.1:8000/v1
  --model NAME      default: the first that the server lists
  --count N         cases for each part (default 200)
  --seed TEXT       default 7
  --concurrency N   requests at a time (default 8)
  --out FILE        figures as JSON (default figures.json beside the weights)
  --failures FILE   wrong answers as JSON lines
  --card            put the table into the model card`;

const { values } = parseArgs({
  options: {
    url: { type: "string" },
    model: { type: "string" },
    count: { type: "string", default: "200" },
    seed: { type: "string", default: "7" },
    concurrency: { type: "string", default: "8" },
    out: { type: "string", default: fileURLToPath(new URL("figures.json", folder)) },
    failures: { type: "string" },
    card: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

if (values.help || values.url === undefined) {
  process.stderr.write(`${usage}\n`);
  process.exit(values.help ? 0 : 2);
}

const model = values.model ?? (await ChatClient.firstModel(values.url));
const { figures, failures } = await runSuite({
  client: new ChatClient(values.url, model),
  count: Number(values.count),
  seed: values.seed,
  concurrency: Number(values.concurrency),
});
const table = formatTable(figures);
process.stdout.write(`${table}\n`);
await writeFile(
  values.out,
  `${JSON.stringify({ model, split: "heldout", seed: values.seed, count: Number(values.count), figures }, null, 2)}\n`,
);
if (values.failures !== undefined)
  await writeFile(values.failures, failures.map((failure) => `${JSON.stringify(failure)}\n`).join(""));
if (values.card) await rewriteCard(fileURLToPath(new URL("README.md", folder)), table);
