// Which part of the product reads a block of YAML, JSON or TypeScript that a document prints.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse as parseYaml } from "yaml";
import { loadClusterConfig } from "../../packages/cluster/dist/index.js";
import { kwargFlags } from "../../packages/cli/dist/commands/cluster.js";
import { readConfigFile } from "../../packages/cli/dist/options/config-file.js";
import { serveRows } from "../../packages/cli/dist/options/serve-options.js";
import { evaluationVocabulary, openDataset, parseGateConfig } from "../../packages/evals/dist/index.js";
import { openaiError } from "../../packages/gateway/dist/families/openai.js";
import { loadGatewayConfig } from "../../packages/gateway/dist/index.js";
import { parseOptimizeConfig } from "../../packages/optimize/dist/index.js";
import { meteringRecord } from "../../packages/protocol/dist/index.js";
import { parseTenantSettings } from "../../packages/server/dist/tenants/tenants-file.js";
import { commandsOf } from "./documented-commands.mjs";
import { parseCommand } from "./parse-command.mjs";

function refuse(message) {
  throw Object.assign(new Error(message), { code: "not_read" });
}

/** What `${NAME}` and `env:` stand for. */
const environment = new Proxy({}, { get: () => "0123456789abcdef", has: () => true });

const gateway = (text) => loadGatewayConfig({ name: "gateway.yaml", text, environment });
const cluster = (text) => loadClusterConfig({ name: "cluster.yaml", text, environment }, kwargFlags());
const evaluation = (text) =>
  parseGateConfig("eval.yaml", text, evaluationVocabulary, { needsExpectations: false });

/** Targets that sections of a gateway's file name. */
const gatewayBase = `version: 1
targets:
${["self-hosted", "openai", "judge", "embedder", "bf16", "int4"].map((name) => `  ${name}: { provider: octavo, url: "http://10.0.0.1:8000", models: [support, gpt-4o-mini, bge-small, judge-8b] }\n`).join("")}routes:
  support: { models: [support], targets: [{ target: bf16 }, { target: int4 }] }
`;
const clusterBase = "version: 1\ndeployments:\n  - name: mini\n    model_loading_config: { model_id: m }\n";
const evaluationBase = {
  targets: 'targets: { candidate: { base_url: "http://127.0.0.1:8000/v1" } }\n',
  datasets: "datasets: { cases: { path: cases.jsonl } }\n",
  evaluators: "evaluators: [exact_match]\n",
  judge: 'judge: { base_url: "http://127.0.0.1:8000/v1", model: judge }\n',
};

/** A section of eval.yaml with the others around it. */
function evaluationSection(text) {
  const given = Object.keys(parseYaml(text));
  const rest = Object.entries(evaluationBase).filter(([name]) => !given.includes(name));
  return evaluation(`version: 1\nname: a section\n${rest.map(([, lines]) => lines).join("")}${text}`);
}

function inFile(name, text, read) {
  const folder = mkdtempSync(join(tmpdir(), "octavo-block-"));
  const path = join(folder, name);
  writeFileSync(path, text);
  return read(path).finally(() => rmSync(folder, { recursive: true }));
}

/** The flags of `octavo serve` that a file holds, as the command parses them. */
function serve(text) {
  return inFile("serve.yaml", text, async (path) =>
    parseCommand(["serve", ...(await readConfigFile(serveRows, path))]),
  );
}

/** A workflow of GitHub: its jobs run commands that there are. */
async function workflow(text) {
  const { jobs, on, ...rest } = parseYaml(text);
  const runs = Object.values(jobs).flatMap(({ steps }) => steps.flatMap(({ run }) => run ?? []));
  const commands = commandsOf(`\`\`\`\n${runs.join("\n")}\n\`\`\``);
  if (on === undefined || Object.keys(rest).length > 0 || commands.length === 0)
    refuse("not a workflow that runs octavo");
  for (const words of commands) await parseCommand(words);
}

/** Readers of YAML by a key that only their files have at the top, the most telling first. */
const yamlReaders = [
  ["jobs", workflow],
  ["deployments", cluster],
  ["routes", gateway],
  ["teacher", (text) => parseOptimizeConfig("optimize.yaml", text)],
  ["targets", evaluation],
  ["driver", (text) => cluster(`${clusterBase}${text}`)],
  ["slo_policy", (text) => cluster(`${clusterBase}${text}`)],
  ...["callers", "rate_limits", "budgets", "store", "cache", "guardrails", "rollouts", "cascades"].map(
    (name) => [name, (text) => gateway(`${gatewayBase}${text}`)],
  ),
  ...["checks", "datasets", "judge", "evaluators"].map((name) => [name, evaluationSection]),
  ["0", (text) => evaluationSection(`evaluators:\n${text}`)],
  ...["served-model-name", "trace-store", "models"].map((name) => [name, serve]),
];

function metering(text) {
  return meteringRecord.strict().parse(JSON.parse(text));
}

function cases(text) {
  return inFile("cases.jsonl", text, async (path) => {
    const found = await openDataset(path);
    let count = 0;
    for await (const _ of found.cases()) count += 1;
    if (count === 0) refuse("no cases");
  });
}

function answeredError(text) {
  const body = JSON.parse(text);
  const { message } = openaiError(body);
  if (message !== body.error?.message || message === undefined) refuse("not an error of OpenAI's API");
}

const jsonReaders = [
  ['"kind":"request"', metering],
  ['"keys":', (text) => parseTenantSettings(text, "tenants.json", environment)],
  ['"input":', cases],
  ['"error":', answeredError],
];

/** What reads a block, undefined where nothing is known to. */
export function readerOf(language, code) {
  if (language === "json") return jsonReaders.find(([text]) => code.includes(text))?.[1];
  const value = parseYaml(code);
  return yamlReaders.find(([key]) => Object.hasOwn(value, key))?.[1];
}
