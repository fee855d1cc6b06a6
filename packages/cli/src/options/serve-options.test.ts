import assert from "node:assert/strict";
import test from "node:test";
import { loadOptionsOf, serverConfigOf } from "./serve-options.js";

const flags = { host: "127.0.0.1", port: 8000 };

test("absent flags leave every default alone", () => {
  assert.deepEqual(serverConfigOf(flags, ["octavo-mini"]), { ...flags, servedModelNames: ["octavo-mini"] });
  assert.ok(Object.values(loadOptionsOf(flags, undefined)).every((value) => value === undefined));
});

test("flags reach the option they name, in its unit", () => {
  const config = serverConfigOf(
    {
      ...flags,
      requestTimeout: 1.5,
      drainTimeout: 0,
      apiKey: ["a", "b"],
      disableAccessLog: true,
      servedModelName: ["x"],
    },
    [],
  );
  assert.deepEqual(config, {
    ...flags,
    requestTimeoutMs: 1500,
    drainTimeoutMs: 0,
    apiKeys: ["a", "b"],
    accessLog: false,
    servedModelNames: ["x"],
  });
  const load = loadOptionsOf(
    { ...flags, kvCacheMemory: 2 ** 30, threads: 3, enablePrefixCaching: false },
    "{{ x }}",
  );
  assert.equal(load.kvCacheMemoryBytes, 2 ** 30);
  assert.equal(load.numThreads, 3);
  assert.equal(load.enablePrefixCaching, false);
  assert.equal(load.chatTemplate, "{{ x }}");
});

test("keys come from the environment where no flag gives them", () => {
  const before = process.env["OCTAVO_API_KEY"];
  try {
    process.env["OCTAVO_API_KEY"] = "one, two,";
    assert.deepEqual(serverConfigOf(flags, []).apiKeys, ["one", "two"]);
    assert.deepEqual(serverConfigOf({ ...flags, apiKey: ["flag"] }, []).apiKeys, ["flag"]);
  } finally {
    if (before === undefined) delete process.env["OCTAVO_API_KEY"];
    else process.env["OCTAVO_API_KEY"] = before;
  }
});
