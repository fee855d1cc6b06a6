import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { OctavoError } from "@octavo/protocol";
import { loadGatewayConfig } from "./load-config.js";

const load = (text: string, environment: Readonly<Record<string, string>> = {}) =>
  loadGatewayConfig({ name: "gateway.yaml", text, environment });

const base = `version: 1
targets:
  a: { provider: vllm, url: "http://127.0.0.1:1", models: [m] }
  b: { provider: openai, api_key: "\${KEY}", models: { big: { name: gpt-x, input: 1 } } }
`;

function problem(text: string): string {
  try {
    load(base + text, { KEY: "sk-secret-key" });
  } catch (thrown) {
    assert.ok(thrown instanceof OctavoError && thrown.code === "invalid_option", String(thrown));
    assert.ok(!thrown.message.includes("sk-secret"), "no value of the file is shown");
    return thrown.message;
  }
  assert.fail("accepted");
}

describe("gateway.yaml", () => {
  it("is read with its defaults, and variables of the environment", () => {
    const config = load(`${base}routes: { r: { models: ["m*"], targets: [a, { target: b, model: big }] } }`, {
      KEY: "k$1",
    });
    assert.equal(config.targets["b"]?.api_key, "k$1");
    assert.equal(config.routes["r"]?.timeouts.first_byte, 60_000);
    assert.deepEqual(config.targets["a"]?.models, { m: {} });
    assert.equal(config.limits.max_body, 32 * 1024 * 1024);
    assert.equal(
      load(
        'version: 1\ntargets: { a: { provider: vllm, url: "http://h", models: [m], headers: { h: "$${X}" } } }',
      ).targets["a"]?.headers["h"],
      "${X}",
    );
  });

  it("names the line of each mistake", () => {
    const cases: readonly (readonly [string, RegExp])[] = [
      ["timeout: 3s\n", /^gateway\.yaml:5:\d+: timeout: there is no such setting$/],
      [
        "routes:\n  r:\n    models: [m]\n    targets: [a]\n    strateggy: weighted\n",
        /^gateway\.yaml:9:\d+: routes\.r\.strateggy: there is no such setting$/,
      ],
      [
        "routes:\n  r:\n    models: [m]\n    targets: [a]\n    strategy: fastest\n",
        /^gateway\.yaml:9:\d+: routes\.r\.strategy: .*"weighted"/,
      ],
      [
        "routes:\n  r:\n    models: [m]\n    targets:\n      - a\n      - { target: c }\n",
        /^gateway\.yaml:10:\d+: routes\.r\.targets\[1\]: there is no target c$/,
      ],
      [
        "routes:\n  r: { models: [m], targets: [{ target: b, model: small }] }\n",
        /:6:.*the target b has no model small$/,
      ],
      [
        "routes:\n  r: { models: [m], targets: [a], timeouts: { idle: 5 } }\n",
        /:6:\d+: routes\.r\.timeouts\.idle: expected string$/,
      ],
      [
        "routes:\n  r: { models: [m], targets: [a], timeouts: { idle: 5 sec } }\n",
        /expected a time such as 250ms/,
      ],
      [
        "routes:\n  x: { models: [m], targets: [a], fallbacks: [y] }\n  y: { models: [n], targets: [a], fallbacks: [z] }\n  z: { models: [o], targets: [a], fallbacks: [x] }\n",
        /:6:\d+: routes\.x\.fallbacks: fallbacks in a circle: x → y → z → x$/,
      ],
      ["routes:\n  x: { models: [m], targets: [a], fallbacks: [nowhere] }\n", /there is no route nowhere$/],
      [
        "routes:\n  x: { models: [m], targets: [a], strategy: prefix_aware }\n",
        /prefix_aware needs the section prefix$/,
      ],
      ["admin: { port: 1, key: short }\n", /:5:\d+: admin\.key: expected a key of 16 characters or more$/],
      ["access_log: stdout\naccess_log: off\n", /:6:\d+: .*unique/i],
      ["listen: [\n", /^gateway\.yaml:\d+:\d+: /],
      [
        'tracing: { otlp_endpoint: "${NOT_SET}" }\n',
        /:5:\d+: tracing\.otlp_endpoint: the environment variable NOT_SET is not set$/,
      ],
    ];
    for (const [text, expected] of cases) assert.match(problem(text), expected, text);
  });

  it("refuses targets without what their provider needs", () => {
    assert.throws(
      () => load("version: 1\ntargets:\n  a: { provider: vllm, models: [m] }"),
      /gateway\.yaml:3:\d+: targets\.a: .* needs a url/,
    );
    assert.throws(
      () => load("version: 1\ntargets:\n  a: { provider: openai, models: [m] }"),
      /needs an api_key/,
    );
    assert.throws(() => load("version: 1\ntargets: {}"), /name at least one target/);
    assert.throws(
      () => load('version: 1\ntargets: { a: { provider: vllm, url: "file:///etc", models: [m] } }'),
      /expected a URL/,
    );
    assert.throws(
      () =>
        load(
          'version: 1\ntargets: { a: { provider: vllm, url: "http://h", models: [m], headers: { h: "a\\nb" } } }',
        ),
      /not a header/,
    );
  });

  it("of the examples is valid", () => {
    const text = readFileSync(new URL("../../../../examples/gateway.yaml", import.meta.url), "utf8");
    assert.deepEqual(Object.keys(load(text).targets), ["first", "second"]);
    const guide = readFileSync(new URL("../../../../docs/guide/gateway.md", import.meta.url), "utf8");
    const [, example = ""] = /```yaml\n(.*?)```/s.exec(guide) ?? [];
    const config = load(example, { OCTAVO_ADMIN_KEY: "0123456789abcdef", OPENAI_API_KEY: "sk" });
    assert.deepEqual(Object.keys(config.routes), ["support", "managed"]);
  });
});
