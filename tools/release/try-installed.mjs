// `node tools/release/try-installed.mjs [--prebuilt] [NODE ...]`: installs the packed packages in an empty folder, as `npm i octavo` does,
// with a PATH that has no compiler, and uses them from there, on this Node and on the given versions (`tools/test-on-node.mjs` installs
// them). The kernels are those built in this clone, with `--prebuilt` those of build-prebuilt.mjs.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { serveTarballs } from "../lib/local-registry.mjs";
import { capture, fail, root, say } from "../lib/steps.mjs";
import { startServer } from "../lib/start-server.mjs";
import { packRelease } from "./pack.mjs";
import { version } from "./workspaces.mjs";

const work = mkdtempSync(join(tmpdir(), "octavo-installed-"));
process.once("exit", () => rmSync(work, { recursive: true, force: true }));

/** A folder with the commands of a PATH that has no compiler. */
function commandsOnly(name, targets) {
  const folder = join(work, name);
  mkdirSync(folder);
  for (const [command, target] of Object.entries(targets)) symlinkSync(target, join(folder, command));
  return folder;
}

const npmFolder = dirname(
  execFileSync("sh", ["-c", "readlink -f $(command -v npm)"], { encoding: "utf8" }).trim(),
);
const shell = execFileSync("sh", ["-c", "command -v sh"], { encoding: "utf8" }).trim();
const ownPath = commandsOnly("bin", {
  node: process.execPath,
  npm: join(npmFolder, "npm-cli.js"),
  npx: join(npmFolder, "npx-cli.js"),
  sh: shell,
});
const environment = (path) => {
  const { CXX: _, ...rest } = process.env;
  return { ...rest, PATH: path, XDG_CACHE_HOME: join(work, "cache") };
};

function textIfThere(path) {
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}

/** Bytes below a folder, links not followed. */
function bytesBelow(folder) {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath ?? entry.path, entry.name)).size, 0);
}

async function install(folder) {
  const tarballs = Object.fromEntries(
    Object.entries(
      packRelease(process.argv.includes("--prebuilt") ? "prebuilt" : "here", join(work, "tarballs")),
    ).map(([name, { path }]) => [name, path]),
  );
  const registry = await serveTarballs(tarballs);
  mkdirSync(folder);
  writeFileSync(join(folder, "package.json"), '{"private": true, "type": "module"}\n');
  writeFileSync(join(folder, ".npmrc"), `@octavo:registry=${registry.url}\n`);
  const started = performance.now();
  const args = ["install", "--no-audit", "--no-fund", "--loglevel=error", tarballs.octavo];
  const { code, output } = await capture("npm", args, { cwd: folder, env: environment(ownPath) });
  if (code !== 0) fail(`npm install octavo failed:\n${output}`);
  const seconds = (performance.now() - started) / 1000;
  registry.close();
  const bytes = bytesBelow(join(folder, "node_modules"));
  say(`npm i octavo: ${seconds.toFixed(1)} s, ${(bytes / 1e6).toFixed(0)} MB`);
  assert.ok(bytes < 120e6, "what is installed stays below 120 MB");
}

/** The commands as a user of the installed package runs them, with one Node. */
async function use(folder, node, path) {
  const command = join(folder, "node_modules", "octavo", "bin", "octavo.js");
  const octavo = (args, options) =>
    spawnSync(node, [command, ...args], {
      cwd: folder,
      encoding: "utf8",
      env: environment(path),
      ...options,
    });
  assert.equal(octavo(["--version"]).stdout.trim(), version);
  const kernels = JSON.parse(octavo(["doctor", "--json"]).stdout).find(({ name }) => name === "kernels");
  const isFast = process.arch === "arm64" || /\bavx2\b/.test(textIfThere("/proc/cpuinfo"));
  assert.equal(kernels.state, isFast ? "ok" : "warning", `kernels: ${kernels.found}`);
  const chat = octavo(["chat", "--temperature", "0", "--max-tokens", "24"], {
    input: "Hello! Who are you?\n",
  });
  assert.equal(chat.status, 0, chat.stderr);
  const server = await startServer(
    ["--port", "0", "--log-level", "silent"],
    [node, command, "serve"],
    folder,
    environment(path),
  );
  try {
    const asked = {
      model: "octavo-mini",
      messages: [{ role: "user", content: "Hello! Who are you?" }],
      temperature: 0,
    };
    const response = await fetch(`${server.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ ...asked, max_tokens: 24 }),
    });
    const { choices } = await response.json();
    assert.equal(`${choices[0].message.content}\n`, chat.stdout, "octavo chat and the server say the same");
    writeFileSync(
      join(folder, "cases.jsonl"),
      `${JSON.stringify({ messages: asked.messages, expected: { includes: choices[0].message.content.slice(0, 8) } })}\n`,
    );
    // Not spawnSync: nobody else would read the server's output meanwhile.
    const args = [
      "eval",
      "run",
      "--dataset",
      "cases.jsonl",
      "--evaluator",
      "contains",
      "--target",
      `${server.url}/v1`,
      "--json",
      "run.json",
    ];
    const evaluated = await capture(node, [command, ...args], { cwd: folder, env: environment(path) });
    assert.equal(evaluated.code, 0, evaluated.output);
  } finally {
    await server.stop();
  }
}

/** Every subpath is there with its types: a program in TypeScript that uses them compiles without `skipLibCheck` and runs. */
function useLibrary(folder) {
  const { exports } = JSON.parse(readFileSync(join(root, "packages/cli/package.json"), "utf8"));
  const subpaths = Object.keys(exports)
    .filter((subpath) => subpath !== "./ai-sdk")
    .map((subpath) => subpath.replace(/^\./, "octavo"));
  // of whoever uses `octavo/ai-sdk`
  const provider = join(folder, "node_modules", "@ai-sdk", "provider");
  if (!existsSync(provider)) {
    mkdirSync(dirname(provider), { recursive: true });
    symlinkSync(join(root, "node_modules", "@ai-sdk", "provider"), provider);
  }
  writeFileSync(
    join(folder, "library.ts"),
    `import { LLM } from "octavo/engine";
import { createEngine } from "octavo/engine/parts";
import { openAiTarget } from "octavo/evals";
import { compileChatTemplate } from "octavo/text";
import { instrumentOpenAI } from "octavo/tracing";
${subpaths.map((subpath, index) => `import * as subpath${index} from "${subpath}";`).join("\n")}
await using llm: LLM = await LLM.load(process.argv[2] ?? "");
const { text } = await llm.chat([{ role: "user", content: "Hello!" }], { temperature: 0, maxTokens: 8 });
const rendered: string = compileChatTemplate("{{ messages[0].content }}").render({ messages: [{ role: "user", content: text }] });
console.log(rendered, typeof createEngine, typeof openAiTarget, typeof instrumentOpenAI);
for (const names of [${subpaths.map((_, index) => `subpath${index}`).join(", ")}]) console.log(Object.keys(names).length > 0);
`,
  );
  const compilerOptions = {
    module: "nodenext",
    target: "es2022",
    lib: ["es2023", "esnext.disposable"],
    strict: true,
    types: ["node"],
    typeRoots: [join(root, "node_modules", "@types")],
  };
  writeFileSync(
    join(folder, "sdk.ts"),
    `import { createOctavo } from "octavo/ai-sdk";\nconsole.log(typeof createOctavo satisfies string);\n`,
  );
  const compile = (config) => {
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
    const tsc = spawnSync(
      process.execPath,
      [join(root, "node_modules", "typescript", "bin", "tsc"), "-p", folder],
      { encoding: "utf8" },
    );
    assert.equal(tsc.status, 0, tsc.stdout);
  };
  compile({ compilerOptions, files: ["library.ts"] });
  // Declarations of @ai-sdk/provider import types of a package that has none.
  compile({ compilerOptions: { ...compilerOptions, skipLibCheck: true }, files: ["sdk.ts"] });
  const model = join(folder, "node_modules", "@octavo", "octavo-mini");
  const ran = spawnSync(process.execPath, ["library.js", model], {
    cwd: folder,
    encoding: "utf8",
    env: environment(ownPath),
  });
  assert.equal(ran.status, 0, ran.stderr);
  assert.match(ran.stdout, /\S+.* function function function/);
  assert.equal(ran.stdout.match(/^true$/gm)?.length, subpaths.length, ran.stdout);
  const sdk = spawnSync(process.execPath, ["sdk.js"], { cwd: folder, encoding: "utf8" });
  assert.equal(sdk.stdout.trim(), "function", sdk.stderr);
}

/** Where no prebuilt kernels fit: one sentence without a compiler, else they are compiled once and kept. */
function useWithoutPrebuilt(folder) {
  const scoped = join(folder, "node_modules", "@octavo");
  const [prebuilt] = readdirSync(scoped).filter((name) => name.startsWith("kernels-"));
  assert.ok(prebuilt, "npm installed this platform's kernels");
  const addon = join(work, "octavo_kernels.node");
  copyFileSync(join(scoped, prebuilt, "octavo_kernels.node"), addon);
  renameSync(join(scoped, prebuilt), join(work, prebuilt));
  const program =
    "const { LLM } = await import('octavo/engine'); const llm = await LLM.load(process.argv[1]); await llm[Symbol.asyncDispose]();";
  const load = (path) =>
    spawnSync(process.execPath, ["--input-type=module", "-e", program, join(scoped, "octavo-mini")], {
      cwd: folder,
      encoding: "utf8",
      env: environment(path),
    });
  const without = load(ownPath);
  assert.notEqual(without.status, 0);
  assert.match(
    without.stderr,
    /No kernels for this machine .* no package @octavo\/kernels-\S+ is installed, and there is no C\+\+ compiler/,
  );

  // Compiling takes minutes: this compiler writes objects that say nothing, and links what was compiled before.
  const compiler = join(commandsOnly("bin-compiler", {}), "g++");
  writeFileSync(
    compiler,
    `#!${process.execPath}
const { copyFileSync, existsSync, writeFileSync } = require("node:fs");
const args = process.argv.slice(2);
const out = args[args.indexOf("-o") + 1];
if (args.includes("--version")) console.log("a compiler for tests");
else if (args.includes("-shared")) copyFileSync(${JSON.stringify(addon)}, out);
else if (existsSync(args[args.indexOf("-c") + 1])) writeFileSync(out, "");
else process.exit(1);
`,
  );
  chmodSync(compiler, 0o755);
  const compiled = load(`${ownPath}${delimiter}${dirname(compiler)}`);
  assert.equal(compiled.status, 0, compiled.stderr);
  assert.match(compiled.stderr, /no prebuilt kernels fit .* compiling them once with a compiler for tests/);
  const again = load(ownPath);
  assert.equal(again.status, 0, again.stderr);
  assert.equal(again.stderr, "", "they are kept");
  renameSync(join(work, prebuilt), join(scoped, prebuilt));
}

const folder = join(work, "project");
await install(folder);
await use(folder, process.execPath, ownPath);
useLibrary(folder);
useWithoutPrebuilt(folder);
say(`installed packages on Node ${process.versions.node}: ok`);
for (const wanted of process.argv.slice(2).filter((argument) => argument !== "--prebuilt")) {
  const node = join(tmpdir(), `octavo-node-${wanted}`, "node_modules", "node", "bin", "node");
  if (!existsSync(node))
    fail(`Node ${wanted} is not installed; run: node tools/test-on-node.mjs ${wanted} --install`);
  await use(folder, node, commandsOnly(`bin-${wanted}`, { node }));
  say(`installed packages on Node ${wanted}: ok`);
}
