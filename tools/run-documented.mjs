// Runs the commands that documents print, as they are printed: `node tools/run-documented.mjs [PAGE ...]`. Each page has a folder with the
// reader's files, `octavo` on the PATH, and the hub's models in a cache where small models stand for them. Servers that a page starts are
// asked what follows on it; pages that start none ask one that all share. What runs until it is ended goes on until its page ends. A
// command that fails, or that prints nothing, fails this. Differently from the page, hosts are this machine and ports are free ones,
// curl fails where the server refuses, and PID is that of the page's server.
// tools/lib/documented-pages.mjs lists what does not run here, and why.
import { spawn } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { blocksOf, oneLine, statementsOf } from "./lib/documented-commands.mjs";
import { copyFolder, writeHubCache, writePagesFiles, writeReadersFiles } from "./lib/documented-files.mjs";
import { createNeighbours, freePort, isInstalled } from "./lib/documented-neighbours.mjs";
import { inputs, needed, notRun, pages, running, sharedNames, statuses } from "./lib/documented-pages.mjs";
import { startServer } from "./lib/start-server.mjs";
import { fail, filesBelow, root, say } from "./lib/steps.mjs";

const guides = filesBelow("docs", (path) => path.endsWith(".md") && !path.includes("decisions"));
const wanted = process.argv.slice(2);
const chosen = pages(guides).filter(
  (page) => wanted.length === 0 || wanted.some((name) => page.includes(name)),
);
/** Pages at a time. */
const lanes = 2;
const longestMs = 180_000;
/** Where a server keeps spans by itself, below the home folder. */
const storeFolder = ".local/share/octavo/traces";

/** Hosts that pages name, all of which are this machine here. */
const host = String.raw`(?:127\.0\.0\.1|localhost|10\.0\.0\.2|gpu-box|replica|staging|queue\.internal|judge\.internal)`;

const scratch = mkdtempSync(join(tmpdir(), "octavo-documented-"));
process.once("exit", () => rmSync(scratch, { recursive: true, force: true }));
const readersEnv = environment();
const template = join(scratch, "template");
mkdirSync(template);
writeReadersFiles(template);
const gguf = join(template, "model-Q4_K_M.gguf");
await shell(
  `octavo quantize octavo-mini --method gguf:Q4_K_M --out made && mv made/*.gguf ${gguf} && rm -r made`,
  { folder: template, env: readersEnv },
);

const neighbours = createNeighbours();
const counts = { ran: 0, left: 0, failed: 0 };
const sharedCommand = `octavo serve octavo-mini --enable-fault-injection --trace-store auto --trace-content full --served-model-name ${sharedNames.join(" ")}`;
const shared = await start(sharedCommand, { folder: scratch, env: readersEnv });
try {
  await recorded(sharedCommand, { folder: scratch, env: readersEnv }, await converse(shared.server));
  await recordSpans();
  const queue = chosen.values();
  await Promise.all(
    Array.from({ length: lanes }, async () => {
      for (const page of queue) await runPage(page);
    }),
  );
} finally {
  await shared.server.stop();
  await neighbours.stop();
}
say(`documents: ${counts.ran} commands ran, ${counts.left} are left to other tests, ${counts.failed} failed`);
if (counts.failed > 0) fail("documents print commands that do not work");

async function runPage(page) {
  const text = readFileSync(join(root, page), "utf8");
  const statements = blocksOf(text).flatMap(({ code }) => statementsOf(code));
  if (statements.length === 0) return;
  const folder = join(scratch, page.replaceAll(/[^\w]/g, "-"));
  copyFolder(template, folder);
  writePagesFiles(folder, text);
  // a page that records has spans of its own
  const home = /^```[^\n]*\n(?:(?!^```).*\n)*.*trace-store/m.test(text)
    ? join(folder, "home")
    : readersEnv.HOME;
  mkdirSync(join(home, storeFolder), { recursive: true });
  symlinkSync(join(home, storeFolder), join(folder, "traces"));
  const state = {
    env: { ...readersEnv, HOME: home },
    asked: shared,
    folder,
    ports: new Map(),
    files: new Map(),
    background: [],
    server: undefined,
  };
  for (const statement of statements) {
    const line = oneLine(statement);
    const beginsWith = ([beginning]) => line.startsWith(beginning);
    const missing = needed.find((row) => beginsWith(row) && !isInstalled(row[1]))?.[1];
    if (missing !== undefined) say(`${page}: ${line.slice(0, 60)} needs ${missing}`);
    if (missing !== undefined || notRun.some(beginsWith)) {
      counts.left += 1;
      continue;
    }
    const started = performance.now();
    try {
      const background = running.find(beginsWith);
      if (isServer(line)) {
        await state.server?.stop();
        state.asked = await start(await translate(statement, state), state);
        state.server = state.asked.server;
        await recorded(line, state, await converse(state.server));
      } else {
        await translateFiles(state);
        const code = await translate(statement, state);
        if (background !== undefined) state.background.push(await launch(code, state, background[1]));
        else await shell(code, state, statement);
        if (line.startsWith("kill -HUP")) await said(state.server, /SIGHUP: .* of the files now/);
      }
      counts.ran += 1;
      if (process.env.OCTAVO_DOCUMENTED_SAY === "1")
        say(`${((performance.now() - started) / 1000).toFixed(1)} s  ${page}: ${line.slice(0, 100)}`);
    } catch (error) {
      report(page, `${statement}\n${error.message}`);
    }
  }
  await state.server?.stop();
  if (
    statements.some((statement) => statement.includes(":4318")) &&
    (await neighbours.collector()).counts.posts === 0
  )
    report(page, "nothing was sent to the collector");
  for (const stop of state.background) await stop();
}

/** Whether a command starts a server that says where it is. */
function isServer(line) {
  return /^(?:[A-Z_]+=\S+ )*(?:npx )?octavo serve\b/.test(line);
}

function report(page, problem) {
  counts.failed += 1;
  process.stderr.write(`\nFAILED  ${page}: ${problem}\n`);
}

/** A server as its command starts it, where no flag names a port on a free one. */
async function start(statement, { folder, env }) {
  const port = await freePort();
  const command = statement
    .replaceAll(/--port \d+/g, `--port ${port}`)
    .replaceAll(/OCTAVO_PORT=\d+/g, `OCTAVO_PORT=${port}`);
  const threads = command.includes("--tensor-parallel-size") ? "2" : "1";
  const started = startServer(
    [],
    ["sh", "-c", command.replace(/((?:npx )?octavo serve)/, "exec $1")],
    folder,
    {
      ...env,
      OCTAVO_PORT: String(port),
      OCTAVO_THREADS: threads,
    },
  );
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error("the server was not there in time")), longestMs);
  });
  const server = await Promise.race([started, late]).finally(() => clearTimeout(timer));
  return { server, port };
}

/**
 * What clients ask, so that logs and stores of a page's server hold something; every other question is long. Keys and certificates are
 * the page's matter. Returns how many questions were answered.
 */
async function converse({ url }) {
  let answered = 0;
  for (let index = 0; index < 4; index += 1) {
    const content = `Hello! ${"How many ships came to town? ".repeat(index % 2 === 0 ? 0 : 200)}`;
    await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "x-tenant-id": index % 3 === 0 ? "acme" : "default",
        traceparent: `00-0af76519${String(index).padStart(24, "0")}-b7ad6b7169203331-01`,
      },
      body: JSON.stringify({ messages: [{ role: "user", content }], max_tokens: 4 }),
    }).then(
      async (response) => {
        await response.text();
        if (response.ok) answered += 1;
      },
      () => undefined,
    );
  }
  return answered;
}

/** Waits until a server has written what it records of the questions it answered: it writes once a second. */
async function recorded(command, { folder, env }, answered) {
  const config = /--config (\S+)/.exec(command)?.[1];
  const set = config === undefined ? command : `${command}\n${readFileSync(join(folder, config), "utf8")}`;
  const log = /metering-log:? (\S+)/.exec(set)?.[1];
  const stored = /trace-store:? auto/.test(set);
  const files = [
    ...(log === undefined ? [] : [join(folder, log)]),
    ...(stored ? [join(env.HOME, storeFolder)] : []),
    ...(stored && /trace-content:? /.test(set) ? [join(env.HOME, storeFolder, "content")] : []),
  ];
  for (const path of files) {
    const isThere = () => countLines(path) >= answered;
    for (let wait = 0; wait < 600 && !isThere(); wait += 1) await sleep(50);
    if (!isThere()) throw new Error(`${path} does not hold what was answered (${answered})`);
  }
}

/** Lines of a file of JSON lines, or of those in a folder. */
function countLines(path) {
  if (!existsSync(path)) return 0;
  const files = path.endsWith(".jsonl") ? [path] : readdirSync(path).map((name) => join(path, name));
  return files
    .filter((name) => name.endsWith(".jsonl"))
    .reduce((sum, name) => sum + readFileSync(name, "utf8").split("\n").length - 1, 0);
}

/** Spans of the shared server under the names that pages have for yesterday's and today's. */
async function recordSpans() {
  for (const name of ["yesterday.jsonl", "today.jsonl", "spans.jsonl"])
    await shell(`octavo traces list --json > ${name}`, { folder: template, env: readersEnv });
  for (const name of ["yesterday", "today"])
    copyFolder(join(readersEnv.HOME, storeFolder, "content"), join(template, name));
}

/** Waits for what a server says of something that was done to it. */
async function said(server, what) {
  for (let wait = 0; wait < 200 && !what.test(server.output()); wait += 1) await sleep(50);
  if (!what.test(server.output())) throw new Error(`the server did not say ${what}:\n${server.output()}`);
}

/** A command that runs until it is ended, once it says that it is there; returns what ends it. */
function launch(code, { folder, env }, ready) {
  return new Promise((resolve, reject) => {
    const child = spawn("sh", ["-c", `exec ${code}`], {
      cwd: folder,
      env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const exited = new Promise((done) => child.on("close", done));
    const timer = setTimeout(() => child.kill("SIGKILL"), longestMs);
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text) => {
        output += text;
        if (!ready.test(output)) return;
        clearTimeout(timer);
        resolve(() => {
          child.kill("SIGTERM");
          return exited;
        });
      });
    child.on("error", reject);
    child.on("close", (status) => reject(new Error(`ended with ${status}:\n${output.slice(-3000)}`)));
  });
}

function shell(code, { folder, env }, statement = code) {
  const line = oneLine(statement);
  const allowed = statuses.find(([beginning]) => line.startsWith(beginning))?.[1] ?? [0];
  const input = inputs.find(([beginning]) => line.startsWith(beginning))?.[1] ?? "";
  return new Promise((resolve, reject) => {
    const child = spawn(
      "sh",
      ["-e", "-c", code.replaceAll("curl ", "curl --fail-with-body --silent --show-error ")],
      { cwd: folder, env, stdio: ["pipe", "pipe", "pipe"], detached: true },
    );
    child.stdin.on("error", () => undefined).end(input);
    // The whole group: what the shell started holds its output open.
    const timer = setTimeout(() => process.kill(-(child.pid ?? Number.NaN), "SIGKILL"), longestMs);
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text) => (output += text));
    child.on("error", reject);
    child.on("close", (status) => {
      clearTimeout(timer);
      const isSilent = output.trim() === "" && !/^curl|^kill|>|--out /.test(statement);
      if (allowed.includes(status) && !isSilent) resolve();
      else reject(new Error(`ended with ${status}:\n${output.slice(-3000)}`));
    });
  });
}

/** A text of a page with the addresses, and the reader's names of things, that hold here. */
async function translate(text, state) {
  const ports = { 8000: state.asked.port, 8001: shared.port, 8002: shared.port };
  for (const [, port] of text.matchAll(new RegExp(`(?:${host}:|--port |\\bport: )(\\d+)`, "g"))) {
    const given = state.ports.get(port);
    if (port === "6379") ports[port] = (await neighbours.redis()).port;
    else if (port === "4318") ports[port] = (await neighbours.collector()).port;
    else if (ports[port] === undefined) {
      ports[port] = given ?? (await freePort());
      state.ports.set(port, ports[port]);
    }
  }
  const scripted = /--judge |https:\/\/api\.example/.test(text) ? (await neighbours.judge()).port : undefined;
  if (scripted !== undefined) ports[scripted] = scripted;
  return text
    .replaceAll(/--judge http:\/\/[^/ ]+:\d+/g, `--judge http://127.0.0.1:${scripted}`)
    .replaceAll("https://api.example.com", `http://127.0.0.1:${scripted}`)
    .replaceAll(new RegExp(`\\b${host}:(\\d+)\\b`, "g"), (_, port) => `127.0.0.1:${ports[port]}`)
    .replaceAll(/--port (\d+)/g, (_, port) => `--port ${ports[port]}`)
    .replaceAll(/\bport: (80[1-9]\d)/g, (_, port) => `port: ${ports[port]}`)
    .replaceAll("--host 10.0.0.2", "--host 127.0.0.1")
    .replaceAll(/\bPID\b/g, String(state.server?.pid));
}

/** The files of a page that may name a server: its own, and those that its commands wrote in folders; never what a link leads to. */
async function translateFiles(state) {
  for (const path of yamlFiles(state.folder)) {
    const text = readFileSync(path, "utf8");
    const known = state.files.get(path);
    const original = known?.written === text ? known.original : text;
    const written = await translate(original, state);
    state.files.set(path, { original, written });
    if (written !== text) writeFileSync(path, written);
  }
}

function yamlFiles(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return yamlFiles(path);
    return entry.isFile() && entry.name.endsWith(".yaml") ? [path] : [];
  });
}

function environment() {
  const bin = join(scratch, "bin");
  mkdirSync(bin);
  const main = join(root, "packages/cli/dist/main.js");
  for (const [name, text] of [
    ["octavo", `exec "${process.execPath}" "${main}" "$@"`],
    // what is installed is run by it
    [
      "npx",
      `[ "$1" = octavo ] && shift && exec octavo "$@"; echo "npx $1 is not of this project" >&2; exit 1`,
    ],
  ]) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(bin, name), 0o755);
  }
  const home = join(scratch, "home");
  mkdirSync(home);
  writeHubCache(join(scratch, "hf"));
  return {
    PATH: `${bin}${delimiter}${process.env.PATH ?? ""}`,
    HOME: home,
    HF_HOME: join(scratch, "hf"),
    HF_HUB_OFFLINE: "1",
    LANG: "C.UTF-8",
    ADMIN_KEY: "an-operators-key",
    OCTAVO_ADMIN_KEY: "an-operators-key",
    OPENAI_API_KEY: "none",
    GATEWAY_KEY: "gateway",
    TEACHER_KEY: "none",
  };
}
