// Runs the commands of docs/guide/start.md as they are printed, in an empty folder with `octavo` on the PATH and the embedded model in
// `models`: blocks marked `run`, the server marked `serve`, and then what is asked of it, marked `ask`. A command that fails, or that
// prints nothing, fails this. Where something else listens on the printed port, another takes its place.
import { spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { blocksOf } from "./lib/documented-commands.mjs";
import { startServer } from "./lib/start-server.mjs";
import { fail, root, say } from "./lib/steps.mjs";

const blocks = blocksOf(readFileSync(join(root, "docs/guide/start.md"), "utf8"));
const marked = (mark) => blocks.filter((block) => block.mark === mark).map(({ code }) => code);
if (["run", "serve", "ask"].some((mark) => marked(mark).length === 0))
  fail("docs/guide/start.md has lost a mark");

const folder = mkdtempSync(join(tmpdir(), "octavo-documented-"));
const bin = join(folder, "bin");
mkdirSync(bin);
writeFileSync(
  join(bin, "octavo"),
  `#!/bin/sh\nexec "${process.execPath}" "${join(root, "packages/cli/dist/main.js")}" "$@"\n`,
);
chmodSync(join(bin, "octavo"), 0o755);
symlinkSync(join(root, "models"), join(folder, "models"));
const env = { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH ?? ""}` };

const port = await freePort();
const withPort = (code) => code.replaceAll(/(127\.0\.0\.1:|--port )8000/g, `$1${port}`);
try {
  for (const code of marked("run")) await shell(code);
  const server = await startServer(
    [],
    ["sh", "-c", `exec ${withPort(marked("serve").join("")).trim()}`],
    folder,
    env,
  );
  try {
    for (const code of marked("ask")) await shell(withPort(code));
  } finally {
    await server.stop();
  }
} catch (error) {
  fail(error.message);
} finally {
  rmSync(folder, { recursive: true });
}
say("docs/guide/start.md: every command ran");

function shell(code) {
  return new Promise((resolve, reject) => {
    const child = spawn(
      "sh",
      ["-e", "-x", "-c", code.replaceAll("curl ", "curl --fail --silent --show-error ")],
      {
        cwd: folder,
        env,
        stdio: ["ignore", "pipe", "pipe"],
      },
    );
    const output = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"])
      child[name].setEncoding("utf8").on("data", (text) => (output[name] += text));
    child.on("error", reject);
    child.on("close", (status) => {
      if (status === 0 && output.stdout.trim() !== "") {
        say(output.stdout.trim().replace(/^/gm, "    "));
        resolve();
      } else reject(new Error(`ended with ${status}:\n${output.stderr}${output.stdout}`));
    });
  });
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
