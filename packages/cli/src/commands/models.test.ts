import assert from "node:assert/strict";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { memoryCheck, nodeCheck, threadsCheck } from "../machine/machine-checks.js";
import { fitOf, fitText } from "../models/model-fit.js";
import { commandTree, createProgram, foreignCommands } from "../program.js";
import { runOctavo } from "../testing/run-octavo.js";

const octavoMini = fileURLToPath(new URL("../../../../models/octavo-mini", import.meta.url));

test("models of the cache are listed, shown and removed", async () => {
  const cache = mkdtempSync(join(tmpdir(), "octavo-cache-"));
  const octavo = (...args: readonly string[]) =>
    runOctavo(args, { env: { HF_HUB_CACHE: cache, HF_HUB_OFFLINE: "1" } });
  try {
    const commit = "0123456789abcdef0123456789abcdef01234567";
    const folder = join(cache, "models--acme--mini");
    const snapshot = join(folder, "snapshots", commit);
    for (const file of ["config.json", "tokenizer.json", "model.safetensors"])
      cpSync(join(octavoMini, file), join(snapshot, file));
    mkdirSync(join(folder, "refs"));
    writeFileSync(join(folder, "refs", "main"), commit);
    mkdirSync(join(cache, "models--acme--broken", "snapshots", commit), { recursive: true });
    const list = await octavo("list");
    assert.match(list.out, /acme\/mini +1\d\.\d MB +bfloat16 +fits, \d+ MiB/);
    assert.match(list.out, /acme\/broken .*not whole/);
    assert.match(
      (await octavo("show", "acme/mini")).out,
      /family +qwen3\nparameters +5\.77 million\nweights +bfloat16, 11 MiB\ncontext +8192 tokens\nKV cache +3 KiB a token/,
    );
    const pulled = await octavo("pull", "acme/mini");
    assert.equal(pulled.out.trim(), snapshot, pulled.err);
    assert.match((await octavo("rm", "acme/mini")).err, /acme\/mini: 1\d\.\d MB freed/);
    const gone = await octavo("rm", "acme/mini");
    assert.equal(gone.code, 1);
    assert.match(gone.err, /not in the cache .*\[artifact_not_found\]/);
  } finally {
    rmSync(cache, { recursive: true });
  }
});

test("a model that does not fit says by how much", async () => {
  const fit = await fitOf(octavoMini);
  assert.equal(fit.context, 8192);
  assert.match(fitText({ ...fit, freeBytes: 2 ** 20 }), /^needs \d+ MiB, free are 1 MiB$/);
  assert.equal((await fitOf("/nowhere")).problem?.code, "artifact_not_found");
});

test("the doctor names one fix for what is wrong", async () => {
  assert.equal(nodeCheck("20.18.3").state, "failure");
  assert.equal(nodeCheck("20.19.0").state, "ok");
  assert.equal(nodeCheck("26.0.0").state, "ok");
  assert.match(memoryCheck(2 ** 29).fix ?? "", /free memory/);
  assert.equal(threadsCheck(1, 8).state, "warning");
  const doctor = await runOctavo(["doctor"]);
  assert.equal(doctor.code, 0, doctor.out);
  assert.match(doctor.out, /kernels +\S+/);
  const devices = await runOctavo(["devices", "--json"]);
  assert.doesNotMatch(
    devices.err,
    /Couldn't load|Warning:/,
    "a driver's own warnings stay out of the terminal",
  );
  const [device] = JSON.parse(devices.out) as { threads: number; freeMemoryBytes: number }[];
  assert.ok(device !== undefined && device.threads >= 1 && device.freeMemoryBytes > 0);
});

test("other tools' commands get a hint, and none of them is ours", async () => {
  for (const [name, hint] of Object.entries(foreignCommands)) {
    assert.ok(!(name in commandTree.commands), name);
    await assert.rejects(createProgram(name.split(" ")), {
      code: "invalid_option",
      message: new RegExp(`no octavo ${name}: `),
    });
    assert.ok(hint.length > 10);
  }
});
