// The map of ARCHITECTURE.md as a test: packages import downwards only, and only what their package.json names.
import assert from "node:assert/strict";
import { join } from "node:path";
import test from "node:test";
import { builtinModules } from "node:module";
import { importsOf, isTest, manifestOf, textOf } from "./lib/sources.mjs";
import { filesBelow } from "./lib/steps.mjs";

/** What each workspace may import of the others. */
const allowed = {
  protocol: [],
  statistics: ["protocol"],
  report: [],
  text: ["protocol"],
  kernels: ["protocol"],
  "kernels-webgpu": ["protocol", "kernels"],
  artifacts: ["protocol", "text", "kernels"],
  engine: ["protocol", "text", "kernels", "kernels-webgpu", "artifacts"],
  tracing: ["protocol"],
  server: ["protocol", "text", "kernels", "artifacts", "engine", "tracing"],
  gateway: ["protocol", "statistics", "text", "tracing"],
  cluster: ["protocol", "statistics", "engine", "tracing", "gateway"],
  evals: ["protocol", "statistics", "text", "report"],
  optimize: ["protocol", "statistics", "evals"],
  studio: ["protocol", "statistics", "report", "text", "kernels", "artifacts", "engine"],
  loadtest: ["protocol", "statistics"],
  cli: [
    "protocol",
    "statistics",
    "report",
    "text",
    "kernels",
    "kernels-webgpu",
    "artifacts",
    "engine",
    "tracing",
    "server",
    "gateway",
    "cluster",
    "evals",
    "optimize",
    "studio",
    "loadtest",
  ],
};

const rootManifest = manifestOf(".");

for (const [name, below] of Object.entries(allowed)) {
  test(`${name} imports only ${below.join(", ") || "nothing of the workspace"}`, () => {
    const folder = `packages/${name}`;
    const manifest = manifestOf(folder);
    const own = new Set(
      Object.keys({
        ...manifest.dependencies,
        ...manifest.peerDependencies,
        ...manifest.optionalDependencies,
      }),
    );
    const forTests = new Set([
      ...own,
      ...Object.keys({ ...rootManifest.devDependencies, ...manifest.devDependencies }),
    ]);
    const sources = filesBelow(`${folder}/src`, (path) => path.endsWith(".ts"));
    assert.ok(sources.length > 0, `${folder}/src has sources`);
    for (const source of sources) {
      for (const { target } of importsOf(source)) {
        if (target.startsWith("node:") || builtinModules.includes(target)) continue;
        if (target.startsWith(".")) {
          const resolved = join(source, "..", target);
          assert.ok(resolved.startsWith(folder), `${source} reaches out of its package: ${target}`);
          continue;
        }
        const packageName = target
          .split("/")
          .slice(0, target.startsWith("@") ? 2 : 1)
          .join("/");
        const workspace = packageName.startsWith("@octavo/")
          ? packageName.slice("@octavo/".length)
          : undefined;
        if (workspace && workspace !== name && !isTest(source)) {
          assert.ok(below.includes(workspace), `${source} imports ${target}, which is not below ${name}`);
        }
        if (workspace !== name) {
          assert.ok(
            (isTest(source) ? forTests : own).has(packageName),
            `${source} imports ${packageName}, not in ${folder}/package.json`,
          );
        }
      }
    }
  });
}

test("the engine knows no HTTP server", () => {
  for (const source of filesBelow("packages/engine/src", (path) => path.endsWith(".ts") && !isTest(path))) {
    for (const { target } of importsOf(source)) {
      // Its own processes talk over sockets.
      if (target === "node:net" && source.startsWith("packages/engine/src/pipeline/")) continue;
      assert.ok(
        !["node:http", "node:https", "node:net", "undici"].includes(target),
        `${source} imports ${target}`,
      );
    }
  }
});

test("nothing that ships imports a test helper", () => {
  for (const source of filesBelow("packages", (path) => path.endsWith(".ts") && !isTest(path)))
    for (const { target } of importsOf(source))
      assert.ok(!/(^|\/)testing(\/|$)/.test(target), `${source} imports ${target}`);
});

/** The packages that installing `name` installs. */
function installedWith(name, reached = new Set()) {
  if (reached.has(name)) return reached;
  reached.add(name);
  for (const dependency of Object.keys(manifestOf(`packages/${name}`).dependencies ?? {}))
    if (dependency.startsWith("@octavo/")) installedWith(dependency.slice("@octavo/".length), reached);
  return reached;
}

test("text and the gateway need no native code and no engine", () => {
  assert.deepEqual(installedWith("text"), new Set(["text", "protocol"]));
  assert.deepEqual(
    installedWith("gateway"),
    new Set(["gateway", "protocol", "statistics", "text", "tracing"]),
  );
});

test("napi.h is included by the binding alone", () => {
  for (const source of filesBelow("packages/kernels/native", (path) => /\.(h|cpp)$/.test(path))) {
    const includes = /#include\s*[<"]napi\.h[>"]/.test(textOf(source));
    if (includes) assert.ok(source.includes("/binding/"), `${source} includes napi.h`);
  }
});
