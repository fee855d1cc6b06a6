import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { OctavoError } from "@octavo/protocol";
import { currentScope, usingAttributes, usingTraceParent, type UsingAttributes } from "./using-attributes.js";

describe("usingAttributes", () => {
  it("holds across awaits and callbacks, and for nobody else", async () => {
    const seen: (string | undefined)[] = [];
    const runs = ["a", "b", "c"].map((tenantId, index) =>
      usingAttributes({ tenantId }, async () => {
        await sleep(3 - index);
        await new Promise<void>((resolve) => setImmediate(resolve));
        seen.push(currentScope().attributes.tenantId);
      }),
    );
    await Promise.all(runs);
    assert.deepEqual(new Set(seen), new Set(["a", "b", "c"]));
    assert.deepEqual(currentScope().attributes, {});
  });

  it("nests: inner facts are added and win", () => {
    usingAttributes({ userId: "u", tags: ["outer"], "llm.system": "vllm", "cluster.queue_depth": 3 }, () => {
      usingAttributes({ tags: ["inner"], "llm.system": "anyscale" }, () => {
        assert.deepEqual(currentScope().attributes, {
          userId: "u",
          tags: ["inner"],
          attributes: { "llm.system": "anyscale", "cluster.queue_depth": 3 },
        });
      });
      assert.equal(currentScope().attributes.attributes?.["llm.system"], "vllm");
    });
  });

  it("knows other spellings of named facts", () => {
    usingAttributes({ "session.id": "s", tenant_id: "t", "user.id": "u", "tag.tags": ["x"] }, () => {
      assert.deepEqual(currentScope().attributes, {
        sessionId: "s",
        tenantId: "t",
        userId: "u",
        tags: ["x"],
      });
    });
  });

  it("returns what the function returns and throws what it throws", () => {
    assert.equal(
      usingAttributes({}, () => 7),
      7,
    );
    assert.throws(() => usingAttributes({}, () => assert.fail("inner")), /inner/);
  });

  it("refuses values that no attribute can hold, by name", () => {
    const bad: readonly UsingAttributes[] = [
      { "my.thing": { a: 1 } },
      { "my.list": ["a", 1] as unknown as readonly string[] },
      { tenantId: 7 as unknown as string },
      { tags: "x" as unknown as readonly string[] },
      { metadata: ["x"] as unknown as Record<string, unknown> },
    ];
    for (const attributes of bad) {
      assert.throws(
        () => usingAttributes(attributes, () => {}),
        (error) =>
          error instanceof OctavoError &&
          error.code === "invalid_option" &&
          error.message.includes(Object.keys(attributes)[0] ?? "-"),
      );
    }
    assert.equal(
      usingAttributes({ tenantId: undefined as unknown as string, constructor: "fine" }, () => "ok"),
      "ok",
    );
  });
});

describe("usingTraceParent", () => {
  it("continues a trace, and takes garbage for none", () => {
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    usingTraceParent({ traceparent }, () => {
      assert.equal(currentScope().parent?.spanId, "b7ad6b7169203331");
      usingTraceParent({ traceparent: "garbage" }, () => {
        assert.equal(currentScope().parent?.spanId, "b7ad6b7169203331");
      });
    });
    usingTraceParent({ traceparent: "garbage" }, () => assert.equal(currentScope().parent, undefined));
  });
});
