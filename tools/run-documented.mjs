// Runs the commands that documents print, as they are printed: `node tools/run-documented.mjs [PAGE ...]`. Each page has a folder with the
// reader's files, `octavo` on the PATH, and the hub's models in a cache where octavo-mini stands for them. Servers that a page starts are
// asked what follows on it; pages that start none ask one that all share. A command that fails, or that prints nothing, fails this. Two
// things differ from the page: ports, since others may listen there, and curl, which fails where the server refuses.
// tools/lib/documented-pages.mjs lists what does not run here, and why.
import { spawn } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { blocksOf, oneLine, statementsOf } from "./lib/documented-commands.mjs";
import { copyFolder, writeHubCache, writePagesFiles, writeReadersFiles } from "./lib/documented-files.mjs";
import { notRun, pages, sharedNames, statuses } from "./lib/documented-pages.mjs";
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

const scratch = mkdtempSync(join(tmpdir(), "octavo-documented-"));
process.once("exit", () => rmSync(scratch, { recursive: true, force: true }));
const env = environment();
const template = join(scratch, "template");
mkdirSync(template);
writeReadersFiles(template);
const gguf = join(template, "model-Q4_K_M.gguf");
await shell(
  `octavo quantize octavo-mini --method gguf:Q4_K_M --out made && mv made/*.gguf ${gguf} && rm -r made`,
  template,
  0,
);

const counts = { ran: 0, left: 0, failed: 0 };
const shared = await start(
  `octavo serve octavo-mini --enable-fault-injection --trace-store auto --trace-content full --served-model-name ${sharedNames.join(" ")}`,
  scratch,
);
try {
  const queue = chosen.values();
  await Promise.all(
    Array.from({ length: lanes }, async () => {
      for (const page of queue) await runPage(page);
    }),
  );
} finally {
  await shared.server.stop();
}
say(`documents: ${counts.ran} commands ran, ${counts.left} are left to other tests, ${counts.failed} failed`);
if (counts.failed > 0) fail("documents print commands that do not work");

async function runPage(page) {
  const text = readFileSync(join(root, page), "utf8");
  const statements = blocksOf(text).flatMap(({ code }) => statementsOf(code));
  if (statements.length === 0) return;
  const folder = join(scratch, page.replaceAll(/[^\w]/g, "-"));
  copyFolder(template, folder);
  symlinkSync(join(env.HOME, ".local/share/octavo/traces"), join(folder, "traces"));
  writePagesFiles(folder, text);
  let asked = shared;
  const stop = async () => {
    if (asked !== shared) await asked.server.stop();
    asked = shared;
  };
  for (const statement of statements) {
    if (notRun.some(([beginning]) => oneLine(statement).startsWith(beginning))) {
      counts.left += 1;
      continue;
    }
    try {
      if (/^(?:[A-Z_]+=\S+ )*(?:npx )?octavo serve\b/.test(statement)) {
        await stop();
        asked = await start(statement, folder);
        await greet(asked);
      } else {
        for (const path of yamlFiles(folder))
          writeFileSync(path, withPort(readFileSync(path, "utf8"), asked.port));
        await shell(statement, folder, asked.port);
      }
      counts.ran += 1;
      if (process.env.OCTAVO_DOCUMENTED_SAY === "1") say(`${page}: ${oneLine(statement).slice(0, 100)}`);
    } catch (error) {
      report(page, `${statement}\n${error.message}`);
    }
  }
  await stop();
}

function report(page, problem) {
  counts.failed += 1;
  process.stderr.write(`\nFAILED  ${page}: ${problem}\n`);
}

/** A server as its command starts it, where no flag names a port on a free one. */
async function start(statement, folder) {
  const port = await freePort();
  const command = statement
    .replaceAll(/--port \d+/g, `--port ${port}`)
    .replaceAll(/OCTAVO_PORT=\d+/g, `OCTAVO_PORT=${port}`);
  const started = startServer(
    [],
    ["sh", "-c", command.replace(/((?:npx )?octavo serve)/, "exec $1")],
    folder,
    {
      ...env,
      OCTAVO_PORT: String(port),
      OCTAVO_THREADS: "1",
    },
  );
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error("the server was not there in time")), longestMs);
  });
  const server = await Promise.race([started, late]).finally(() => clearTimeout(timer));
  return { server, port };
}

/** One question, so that logs and stores of a page's server hold something; keys and certificates are the page's matter. */
async function greet({ server }) {
  await fetch(`${server.url}/v1/chat/completions`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    },
    body: JSON.stringify({ messages: [{ role: "user", content: "Hello!" }], max_tokens: 4 }),
  }).then(
    (response) => response.text(),
    () => undefined,
  );
}

function shell(statement, folder, port) {
  const code = withPort(statement, port).replaceAll("curl ", "curl --fail-with-body --silent --show-error ");
  const allowed = statuses.find(([beginning]) => oneLine(statement).startsWith(beginning))?.[1] ?? [0];
  return new Promise((resolve, reject) => {
    const child = spawn("sh", ["-e", "-c", code], {
      cwd: folder,
      env,
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    // The whole group: what the shell started holds its output open.
    const timer = setTimeout(() => process.kill(-(child.pid ?? Number.NaN), "SIGKILL"), longestMs);
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text) => (output += text));
    child.on("error", reject);
    child.on("close", (status) => {
      clearTimeout(timer);
      const isSilent = output.trim() === "" && !/^curl|>|--out /.test(statement);
      if (allowed.includes(status) && !isSilent) resolve();
      else reject(new Error(`ended with ${status}:\n${output.slice(-3000)}`));
    });
  });
}

/** Servers that listen on one port stand for those on the printed ones. */
function withPort(text, port) {
  return text.replaceAll(/(127\.0\.0\.1|localhost):(8000|8001|8002)\b/g, `$1:${port}`);
}

/** The files of a page that may name a server: its own, and those that its commands wrote in folders; never what a link leads to. */
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

function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer().once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port: free } = probe.address();
      probe.close(() => resolve(free));
    });
  });
}
