import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { createCpuBackend } from "../index.js";
import type { BackendInfo } from "../backend.js";
import { chooseByTimes, kernelFeatures, parseKernelPaths } from "./kernel-choice.js";
import { kernelKinds, type KernelKind, type KernelPath, type ProbedTimes } from "./kernel-paths.js";
import { loadAddon } from "./load-addon.js";

const even = Object.fromEntries(
  kernelKinds.map((kind) => [
    kind,
    [
      ["avx512_bf16", 1e-3],
      ["avx2", 1e-3],
    ],
  ]),
) as unknown as ProbedTimes;
const packageEntry = new URL("../index.js", import.meta.url).href;

/** What a process of its own says of its backend, with a cache folder of its own. */
function infoOf(options: object, env: Readonly<Record<string, string>>): BackendInfo {
  const program = `
    const { createCpuBackend } = await import(${JSON.stringify(packageEntry)});
    const backend = createCpuBackend(${JSON.stringify(options)});
    process.stdout.write(JSON.stringify(backend.info), () => process.exit());`;
  const { stdout, stderr, status } = spawnSync(process.execPath, ["--input-type=module", "-e", program], {
    encoding: "utf8",
    env: { ...process.env, OCTAVO_ISA: "", ...env },
  });
  assert.equal(status, 0, stderr);
  return JSON.parse(stdout) as BackendInfo;
}

describe("choice of kernels", () => {
  test("a path that is clearly faster is taken, kind by kind, with the reason", () => {
    const { paths, reasons } = chooseByTimes({
      ...even,
      bf16: [
        ["avx512_bf16", 2e-3],
        ["avx512", 1e-3],
        ["avx2", 1.5e-3],
      ],
      ops: [
        ["avx512_bf16", 1.1e-3],
        ["avx512", 1e-3],
        ["avx2", 3e-3],
      ],
    });
    assert.deepEqual(paths, { bf16: "avx512" }, "a tenth may be noise");
    assert.deepEqual(reasons, ["bf16 on avx512, 2.00 times as fast here as on avx512_bf16"]);
    assert.deepEqual(chooseByTimes(even), { paths: {}, reasons: [] });
  });

  test("what a backend says of its paths tells every choice apart", () => {
    const all = (path: KernelPath): Record<KernelKind, KernelPath> =>
      Object.fromEntries(kernelKinds.map((kind) => [kind, path])) as Record<KernelKind, KernelPath>;
    assert.deepEqual(kernelFeatures(all("avx512_bf16"), "avx512_bf16"), ["avx512_bf16"]);
    assert.deepEqual(kernelFeatures(all("avx2"), "avx2"), []);
    assert.deepEqual(kernelFeatures({ ...all("avx512_bf16"), bf16: "avx512" }, "avx512_bf16"), [
      "avx512_bf16",
      "bf16:avx512",
    ]);
  });

  test("bad lists", () => {
    assert.deepEqual(parseKernelPaths("bf16=avx512, ops=avx2"), { bf16: "avx512", ops: "avx2" });
    for (const text of ["", "fast", "bf16", "bf16=", "bf16=sse", "int4=avx2", "bf16=avx2,"]) {
      assert.throws(() => parseKernelPaths(text), { code: "invalid_option", param: "kernels" }, text);
    }
  });

  test("paths by kind are taken as asked, and refused where a backend exists or the machine lacks them", () => {
    const info = infoOf({ kernels: "bf16=scalar,ops=scalar" }, {});
    if (info.instructionSet !== "scalar")
      assert.ok(info.features.includes("bf16:scalar") && info.features.includes("ops:scalar"));
    using first = createCpuBackend();
    assert.deepEqual(first.info.kernelReasons, []);
    const present = loadAddon().kernelPaths();
    using same = createCpuBackend({ kernels: `bf16=${present.bf16}` });
    assert.deepEqual(same.info.features, first.info.features);
    const other = present.bf16 === "scalar" ? "avx2" : "scalar";
    assert.throws(() => createCpuBackend({ kernels: `bf16=${other}` }), {
      code: "invalid_option",
      param: "kernels",
    });
    const foreign = process.arch === "x64" ? "neon" : "avx2";
    assert.throws(() => createCpuBackend({ kernels: `ops=${foreign}` }), {
      code: "invalid_option",
      param: "kernels",
    });
  });

  test("measured once: later processes run on what the cache says, and a damaged cache is measured again", () => {
    const folder = mkdtempSync(join(tmpdir(), "octavo-kernel-times-"));
    try {
      const env = { XDG_CACHE_HOME: folder };
      const measured = infoOf({ kernels: "auto" }, env);
      const [file = ""] = readdirSync(join(folder, "octavo"));
      assert.match(file, /^kernel-times-[0-9a-f]{16}\.json$/);
      const path = join(folder, "octavo", file);
      const best = infoOf({}, env).features.includes("avx512_bf16") ? "avx512_bf16" : measured.instructionSet;
      const told = Object.fromEntries(
        kernelKinds.map((kind) => [
          kind,
          [
            [best, 1],
            ["scalar", kind === "ops" ? 0.1 : 2],
          ],
        ]),
      );
      writeFileSync(path, JSON.stringify(told));
      const chosen = infoOf({ kernels: "auto" }, env);
      if (best !== "scalar") {
        assert.ok(chosen.features.includes("ops:scalar"));
        assert.deepEqual(chosen.kernelReasons, [`ops on scalar, 10.00 times as fast here as on ${best}`]);
      }
      const forced = infoOf({ kernels: "auto" }, { ...env, OCTAVO_ISA: "scalar" });
      assert.deepEqual(
        [forced.instructionSet, forced.features],
        ["scalar", []],
        "OCTAVO_ISA leaves nothing to measure",
      );
      writeFileSync(path, '{"bf16": [["avx512", "fast"]]}');
      assert.ok(!infoOf({ kernels: "auto" }, env).features.includes("ops:scalar"));
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
