import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { OctavoError } from "@octavo/protocol";
import { defaultServerConfig, type ServerConfig } from "./config.js";
import { resolveServerConfig } from "./resolve-config.js";

describe("server configuration", () => {
  it("fills in defaults", () => {
    assert.deepEqual(resolveServerConfig(), defaultServerConfig);
    assert.equal(resolveServerConfig({ port: 9000 }).port, 9000);
  });

  const bad: readonly Partial<ServerConfig>[] = [
    { port: -1 },
    { port: 65_536 },
    { port: Number.NaN },
    { maxBodyBytes: 0 },
    { maxHeaderBytes: 10 },
    { bodyTimeoutMs: 0 },
    { maxLogprobs: -2 },
    { apiKeys: [""] },
    { servedModelNames: [""] },
  ];
  for (const options of bad) {
    it(`refuses ${JSON.stringify(options)} by name`, () => {
      const [name = ""] = Object.keys(options);
      const refuse = (error: unknown): boolean =>
        error instanceof OctavoError &&
        error.code === "invalid_option" &&
        error.param === name &&
        error.message.startsWith(`${name}: `);
      assert.throws(() => resolveServerConfig(options), refuse);
    });
  }
});
