import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { OctavoError } from "@octavo/protocol";
import { defaultServerConfig, type ServerConfig } from "./config.js";
import { resolveServerConfig } from "./resolve-config.js";

describe("server configuration", () => {
  it("fills in defaults", () => {
    assert.deepEqual(resolveServerConfig(), defaultServerConfig);
    assert.equal(resolveServerConfig({ port: 9000 }).port, 9000);
    const allowedMediaDomains = ["Images.Example.com", "minio.internal:9000", "10.0.0.5", "[::1]:8080"];
    assert.deepEqual(resolveServerConfig({ allowedMediaDomains }).allowedMediaDomains, allowedMediaDomains);
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
    ...[
      "",
      "*",
      "http://host",
      "host/path",
      "user@host",
      "0177.0.0.1",
      "2130706433",
      "[::ffff:127.0.0.1]",
      "::1",
    ].map((host) => ({ allowedMediaDomains: [host] })),
    { mediaFetchTimeoutMs: 0 },
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
