// The files of a reader that commands of documents name, in a folder of their own.
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { encodeSafetensors } from "../../packages/artifacts/dist/testing/write-safetensors.js";
import { DraftingFolder } from "../../packages/engine/dist/testing/oracles/head-model.js";
import { hubModels } from "./documented-pages.mjs";
import { root } from "./steps.mjs";

const mini = join(root, "models/octavo-mini");
const isOfModel = (name) =>
  /^\d+_|\.(json|jinja|safetensors)$/.test(name) && !/^(package|tsconfig|figures)/.test(name);
const lines = (rows) => rows.map((row) => `${JSON.stringify(row)}\n`).join("");

/** A hub's cache in which small models stand for those that pages name. */
export function writeHubCache(folder) {
  for (const [id, model] of Object.entries(hubModels)) {
    const from = join(root, model);
    const snapshot = hubSnapshot(folder, id);
    for (const name of readdirSync(from).filter(isOfModel))
      symlinkSync(join(from, name), join(snapshot, name));
  }
  writeAdapter(hubSnapshot(folder, "org/support-lora"));
  const glm = new DraftingFolder("glm4-moe");
  copyFolder(glm.model, hubSnapshot(folder, "zai-org/GLM-4.5-Air"));
  glm[Symbol.dispose]();
}

function hubSnapshot(folder, id) {
  const repository = join(folder, "hub", `models--${id.replace("/", "--")}`);
  const commit = "0123456789abcdef0123456789abcdef01234567";
  const snapshot = join(repository, "snapshots", commit);
  mkdirSync(join(repository, "refs"), { recursive: true });
  mkdirSync(snapshot, { recursive: true });
  writeFileSync(join(repository, "refs", "main"), commit);
  return snapshot;
}

/** A LoRA adapter of octavo-mini that changes its queries a little. */
function writeAdapter(folder) {
  mkdirSync(folder, { recursive: true });
  const config = { peft_type: "LORA", r: 2, lora_alpha: 2, target_modules: ["q_proj"], bias: "none" };
  writeFileSync(join(folder, "adapter_config.json"), JSON.stringify(config));
  const matrix = (name, shape) => ({
    name,
    type: "f32",
    shape,
    data: Float32Array.from({ length: shape[0] * shape[1] }, (_, index) => 0.001 * (index % 7)),
  });
  const tensors = Array.from({ length: 6 }, (_, layer) => {
    const name = `base_model.model.model.layers.${layer}.self_attn.q_proj`;
    return [matrix(`${name}.lora_A.weight`, [2, 256]), matrix(`${name}.lora_B.weight`, [256, 2])];
  });
  writeFileSync(join(folder, "adapter_model.safetensors"), encodeSafetensors(tensors.flat()));
}

/** What pages say that the reader has. */
export function writeReadersFiles(folder) {
  const write = (name, text) => writeFileSync(join(folder, name), text);
  const cases = Array.from({ length: 4 }, (_, index) => ({
    id: `case-${index}`,
    input: ["Hello! Who are you?", "What is the weather in Oslo?", "Say yes.", "Count to three."][index],
    expected: ["Octavo", "Oslo", "yes", "one"][index],
    max_tokens: 16,
  }));
  for (const name of ["cases.jsonl", "golden.jsonl", "train.jsonl", "validation.jsonl", "held-out.jsonl"])
    write(
      name,
      lines(cases.map((row) => ({ ...row, id: `${name}-${row.id}`, input: `${row.input} (${name})` }))),
    );
  const talks = Array.from({ length: 12 }, (_, index) => ({
    messages: [
      { role: "user", content: `What is ${index} and one?` },
      { role: "assistant", content: `It is ${index + 1}.` },
    ],
  }));
  write("conversations.jsonl", lines(talks));
  const texts = Array.from({ length: 240 }, (_, index) => ({
    text: `In the year ${1900 + index}, ${index * 7} ships came to town.`,
  }));
  write("texts.jsonl", lines(texts));
  const answers = Array.from({ length: 400 }, (_, index) => ({
    id: `answer-${index}`,
    input: "Where is my money?",
    context: "Refunds take five days.",
    output: `${["Yes please", "You get a refund now", "please call", "no, go"][index % 4]}, ticket ${index}`,
    cluster: `customer-${index}`,
  }));
  const label = ({ id, output }) => ({ id, label: output.includes("please") ? "pass" : "fail" });
  write("answers.jsonl", lines(answers));
  write("labelled.jsonl", lines(answers.slice(0, 60).map((row) => ({ ...row, ...label(row) }))));
  write("no-refunds.yaml.labels.jsonl", lines(answers.slice(0, 120).map(label)));
  write(
    "AzureLLMInferenceTrace_conv.csv",
    `TIMESTAMP,ContextTokens,GeneratedTokens\n${Array.from({ length: 60 }, (_, second) => `2023-11-16 18:15:${String(second).padStart(2, "0")}.0000000,374,44\n`).join("")}`,
  );
  write("table.csv", 'Question;Right answer\nSay yes.;yes\n"Who; are you?";Octavo\n');
  write("book.txt", "The rain fell on the town, and nobody was in the street. ".repeat(4000));
  write("verdicts.jsonl", lines([{ trace_id: "0af7651916cd43dd8448eb211c80319c", passed: true }]));
  write(
    "promptfooconfig.yaml",
    'prompts: ["Answer: {{question}}"]\nproviders: [openai:octavo-mini]\ntests:\n  - vars: { question: "Say yes." }\n    assert: [{ type: contains, value: "yes" }]\n',
  );
  write("tenants.json", '{"keys": [{"key": "sk-acme-1", "tenant": "acme"}]}\n');
  write("change.txt", "nothing yet\n");
  mkdirSync(join(folder, "prompts"));
  write("prompts/system.md", "Answer in one word.\n");
  write(
    "prompts/tools.json",
    '[{"type": "function", "function": {"name": "f", "description": "does f", "parameters": {"type": "object", "properties": {}}}}]\n',
  );
  write(
    "prompts/answer.schema.json",
    '{"type": "object", "description": "an answer", "properties": {"answer": {"type": "string", "description": "the answer"}}}\n',
  );
  for (const name of ["deploy", "examples"]) symlinkSync(join(root, name), join(folder, name));
  mkdirSync(join(folder, "models"));
  for (const name of ["octavo-mini", "support-q4"]) symlinkSync(mini, join(folder, "models", name));
  for (const name of ["sql", "sql-v2"]) writeAdapter(join(folder, "adapters", name));
  symlinkSync(join(root, "packages/artifacts/fixtures/drafting/eagle3"), join(folder, "eagle3-llama3.1-8b"));
  for (const name of ["model", "my-model", "qwen-awq", "model-int4"]) symlinkSync(mini, join(folder, name));
  write("config.json", readFileSync(join(mini, "config.json"), "utf8"));
  const quiet = { cwd: folder, stdio: "ignore" };
  execFileSync(
    "openssl",
    [
      "req",
      "-x509",
      "-newkey",
      "rsa:2048",
      "-nodes",
      "-keyout",
      "key.pem",
      "-out",
      "cert.pem",
      "-days",
      "2",
      "-subj",
      "/CN=localhost",
    ],
    quiet,
  );
  execFileSync("git", ["init", "--quiet"], quiet);
  execFileSync("git", ["add", "change.txt"], quiet);
  write("change.txt", "something\n");
}

/** The files whose names stand in the first line of a page's blocks: `# octavo.yaml`; and its only block of JSON as tenants.json. */
export function writePagesFiles(folder, text) {
  for (const [, language, code] of text.matchAll(/^```(yaml|json)\n([\s\S]*?)^```$/gm)) {
    const name =
      /^# ([\w-]+\.yaml)\b/.exec(code)?.[1] ??
      (/"tenants":\s*\{/.test(code) && language === "json" ? "tenants.json" : undefined);
    if (name !== undefined) writeFileSync(join(folder, name), code);
  }
}

export function copyFolder(from, to) {
  cpSync(from, to, { recursive: true, verbatimSymlinks: true });
}
