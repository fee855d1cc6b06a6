import { spawn } from "node:child_process";
import { join } from "node:path";
import { root } from "./steps.mjs";

/** Starts `octavo serve` (or another command) as users do and waits for the address it prints. */
export function startServer(
  args,
  command = [process.execPath, join(root, "packages/cli/dist/main.js"), "serve"],
  cwd = root,
  env = process.env,
) {
  return new Promise((resolve, reject) => {
    const [program, ...first] = command;
    const child = spawn(program, [...first, ...args], { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    let ready = false;
    // a script that fails must not leave its server behind
    const end = () => child.kill();
    process.once("exit", end);
    child.on("close", () => process.off("exit", end));
    const exited = new Promise((done) => child.on("close", (code, signal) => done({ code, signal })));
    child.on("error", reject);
    child.on("close", (code) =>
      reject(new Error(`the server ended with ${code} before it answered:\n${output}`)),
    );
    child.stdout.on("data", (chunk) => (output += chunk));
    child.stderr.on("data", (chunk) => {
      output += chunk;
      if (ready) process.stderr.write(chunk);
      const url = /serves .+ at (https?:\/\/\S+?)\/v1\b/.exec(output)?.[1];
      if (ready || !url || !/\ncurl /.test(output)) return;
      ready = true;
      resolve({
        url,
        pid: child.pid,
        output: () => output,
        /** Asks it to end as an operator would; resolves to how it ended. */
        async stop(signal = "SIGTERM") {
          child.kill(signal);
          return exited;
        },
      });
    });
  });
}
