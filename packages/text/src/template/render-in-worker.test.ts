import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { OctavoError } from "@octavo/protocol/errors";
import { renderInWorker, type RenderLimits } from "./render-in-worker.js";

const input = { messages: [{ role: "user", content: "Hi" }], variables: { greeting: "Hello" } };

async function assertFails(
  source: string,
  limits: RenderLimits,
  message: RegExp,
  code = "template_error",
): Promise<void> {
  await assert.rejects(renderInWorker(source, input, limits), (error) => {
    assert.ok(error instanceof OctavoError, String(error));
    assert.equal(error.code, code);
    assert.match(error.message, message);
    return true;
  });
}

describe("renderInWorker", () => {
  it("renders what the template says", async () => {
    const text = await renderInWorker("{{ bos_token }}{{ greeting }} {{ messages[0].content }}", input, {
      tokens: { bosToken: "<s>" },
    });
    assert.equal(text, "<s>Hello Hi");
  });

  it("reports the template's own failures", async () => {
    await assertFails("{{ raise_exception('no') }}", {}, /^no \(template line 1\)$/);
    await assertFails("{% if %}", {}, /does not parse/);
  });

  it("ends a template that takes too many steps", async () => {
    const loop = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}";
    await assertFails(loop, { maxWork: 10_000 }, /does not end within 10000 steps/);
  });

  it("does not blame the template for a worker that does not answer", async () => {
    const loop = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}";
    await assertFails(loop, { timeoutMs: 1 }, /try again later/, "overloaded");
  });

  it("ends a template that takes too much memory", async () => {
    const hoard =
      "{% set ns = namespace(all=[]) %}{% for a in range(99999) %}{% set ns.all = [ns.all, range(99999), range(99999)] %}{% endfor %}";
    await assertFails(hoard, { memoryMb: 32 }, /needs more than 32 MB/);
  });

  it("bounds the output and the template", async () => {
    await assertFails("{{ 'x' * 1000 }}", { maxOutputLength: 999 }, /writes 1000 characters/);
    await assertFails("x".repeat(1024 * 1024 + 1), {}, /is longer than/);
  });

  it("stops when it is told to", async () => {
    const already = AbortSignal.abort();
    await assertFails("x", { signal: already }, /cancelled/, "request_cancelled");
    const controller = new AbortController();
    const rendering = assertFails("x", { signal: controller.signal }, /cancelled/, "request_cancelled");
    controller.abort();
    await rendering;
  });

  it("leaves other renderings alone", async () => {
    const patient: RenderLimits = {};
    const bad = assertFails("{{ missing.attribute }}", patient, /undefined/);
    const good = Promise.all(
      Array.from({ length: 3 }, (_, index) => renderInWorker(`${index}{{ greeting }}`, input, patient)),
    );
    assert.deepEqual(await good, ["0Hello", "1Hello", "2Hello"]);
    await bad;
  });
});
