// What deploy/ says of ports, flags, files and metrics is so.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { parse } from "yaml";
import { root } from "../lib/steps.mjs";

const text = (path) => readFileSync(join(root, "deploy", path), "utf8");
const has = (command) => spawnSync(command, ["--version"]).error === undefined;

test("the image runs what the package has, as nobody, and asks its health", () => {
  const lines = text("Dockerfile").split("\n");
  assert.ok(
    lines.includes("USER 1000") && lines.includes("STOPSIGNAL SIGTERM") && lines.includes("EXPOSE 8000"),
  );
  const entry = JSON.parse(lines.find((line) => line.startsWith("ENTRYPOINT")).slice("ENTRYPOINT".length));
  assert.equal(entry[0], "octavo");
  const help = execFileSync(process.execPath, [join(root, "packages/cli/dist/main.js"), entry[1], "--help"], {
    encoding: "utf8",
  });
  for (const flag of entry.filter((word) => word.startsWith("--"))) assert.ok(help.includes(flag), flag);
  const [, probe] = /CMD (\["node".*\])\n/.exec(text("Dockerfile"));
  const [, option, script] = JSON.parse(probe);
  const failed = spawnSync(process.execPath, [option, script.replace("8000", "9")]);
  assert.equal(failed.status, 1, "a server that is not there is not healthy");
});

test("Compose mounts files that are there", () => {
  const { services, volumes } = parse(text("compose.yaml"));
  for (const [name, { volumes: mounts = [] }] of Object.entries(services))
    for (const mount of mounts) {
      const [source] = mount.split(":");
      const isThere = source.startsWith("./") ? existsSync(join(root, "deploy", source)) : source in volumes;
      assert.ok(isThere, `${name}: ${source}`);
    }
  const { scrape_configs: scraped } = parse(text("prometheus/compose.yml"));
  assert.deepEqual(scraped[0].static_configs[0].targets, ["octavo:8000"]);
  const [{ url }] = parse(text("grafana/provisioning/datasources/prometheus.yaml")).datasources;
  assert.ok(new URL(url).hostname in services);
  const [{ options }] = parse(text("grafana/provisioning/dashboards/octavo.yaml")).providers;
  assert.ok(services.grafana.volumes.some((mount) => mount.includes(options.path)));
});

test("promtool accepts the configuration", { skip: has("promtool") ? false : "no promtool" }, () => {
  execFileSync("promtool", ["check", "config", "deploy/prometheus/compose.yml"], {
    cwd: root,
    stdio: "pipe",
  });
});

test("systemd accepts the unit", { skip: has("systemd-analyze") ? false : "no systemd-analyze" }, () => {
  const { status, stderr } = spawnSync(
    "systemd-analyze",
    ["verify", join(root, "deploy/systemd/octavo.service")],
    { encoding: "utf8" },
  );
  assert.equal(status, 0, stderr);
});

test("the workflow runs tools that are there", () => {
  const { jobs } = parse(readFileSync(join(root, ".github/workflows/release.yml"), "utf8"));
  const commands = Object.values(jobs).flatMap(({ steps }) => steps.map(({ run = "" }) => run));
  const tools = commands.flatMap((run) =>
    [...run.matchAll(/node (tools\/\S+\.mjs)/g)].map(([, path]) => path),
  );
  assert.ok(tools.length >= 6);
  for (const path of tools) assert.ok(existsSync(join(root, path)), path);
});
