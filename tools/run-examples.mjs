// Runs every example on the embedded model; one that fails or prints nothing fails the check.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { fail, filesBelow, root, say } from "./lib/steps.mjs";
import { setup } from "./setup.mjs";
import { startServer } from "./lib/start-server.mjs";

await setup();
const examples = filesBelow("examples/src", (path) => path.endsWith(".ts"));
const server = await startServer(["--port", "0", "--log-level", "silent"]);
try {
  for (const example of examples) {
    const output = await new Promise((resolve, reject) => {
      const compiled = join(root, example.replace("/src/", "/dist/").replace(/\.ts$/, ".js"));
      const env = { ...process.env, OPENAI_BASE_URL: `${server.url}/v1` };
      const child = spawn(process.execPath, [compiled], {
        cwd: root,
        env,
        stdio: ["ignore", "pipe", "inherit"],
      });
      let text = "";
      child.stdout.on("data", (chunk) => (text += chunk));
      child.on("error", reject);
      child.on("close", (code) =>
        code === 0 ? resolve(text) : reject(new Error(`${example} ended with ${code}`)),
      );
    }).catch((error) => fail(error.message));
    if (output.trim() === "") fail(`${example} printed nothing`);
    say(`${example}\n${output.trim().replace(/^/gm, "    ")}`);
  }
} finally {
  await server.stop();
}
