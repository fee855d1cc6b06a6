// The files of a reader that commands of documents name, in a folder of their own.
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { hubModels } from "./documented-pages.mjs";
import { root } from "./steps.mjs";

const mini = join(root, "models/octavo-mini");
const isOfModel = (name) =>
  /\.(json|jinja|safetensors)$/.test(name) && !/^(package|tsconfig|figures)/.test(name);
const lines = (rows) => rows.map((row) => `${JSON.stringify(row)}\n`).join("");

/** A hub's cache in which octavo-mini stands for each of the models. */
export function writeHubCache(folder) {
  for (const id of hubModels) {
    const repository = join(folder, "hub", `models--${id.replace("/", "--")}`);
    const snapshot = join(repository, "snapshots", "0123456789abcdef0123456789abcdef01234567");
    mkdirSync(join(repository, "refs"), { recursive: true });
    mkdirSync(snapshot, { recursive: true });
    writeFileSync(join(repository, "refs", "main"), "0123456789abcdef0123456789abcdef01234567");
    for (const name of readdirSync(mini).filter(isOfModel))
      symlinkSync(join(mini, name), join(snapshot, name));
  }
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
  symlinkSync(join(root, "models"), join(folder, "models"));
  symlinkSync(join(root, "deploy"), join(folder, "deploy"));
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
