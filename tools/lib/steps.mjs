// What `npm start`, `npm test` and CI share: plain Node, because it runs before anything is installed.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { capture as captureOutput, digestOf } from "../../packages/kernels/compile/processes.mjs";

export { digestOf };

export const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..");

/** Runs a command from the repository root; resolves to its exit code. */
export function run(command, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: root, stdio: "inherit", ...options });
    child.on("error", reject);
    child.on("close", (code, signal) => resolve(code ?? (signal ? 128 : 1)));
  });
}

/** Runs a command from the repository root; resolves to its exit code and all that it said. */
export function capture(command, args, options = {}) {
  return captureOutput(command, args, { cwd: root, ...options });
}

/** Runs a command and throws one clear line when it fails. */
export async function must(what, command, args, options) {
  const code = await run(command, args, options);
  if (code !== 0) fail(`${what} failed (exit ${code}): ${command} ${args.slice(0, 6).join(" ")}`);
}

export function fail(message) {
  process.stderr.write(`\noctavo: ${message}\n`);
  process.exit(1);
}

export function say(message) {
  process.stderr.write(`octavo: ${message}\n`);
}

/** Files below a folder that `keep` accepts, sorted, as paths from the root. */
export function filesBelow(folder, keep) {
  const found = [];
  const walk = (directory) => {
    for (const entry of readdirSync(directory, { withFileTypes: true })) {
      if (entry.name === "node_modules" || entry.name === "dist" || entry.name === "build") continue;
      const path = join(directory, entry.name);
      if (entry.isDirectory()) walk(path);
      else if (keep(path)) found.push(relative(root, path));
    }
  };
  if (existsSync(join(root, folder))) walk(join(root, folder));
  return found.toSorted((a, b) => (a < b ? -1 : 1));
}

/** Remembers that an input was already handled, so that later starts skip the work. */
export function stamp(name) {
  const path = join(root, ".octavo", `${name}.stamp`);
  return {
    matches: (digest) => existsSync(path) && readFileSync(path, "utf8") === digest,
    write(digest) {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, digest);
    },
  };
}

export function newestMtimeMs(paths) {
  return Math.max(0, ...paths.map((path) => statSync(join(root, path)).mtimeMs));
}
