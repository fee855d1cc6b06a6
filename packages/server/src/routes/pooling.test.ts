import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { singleBitsOfHalf } from "@octavo/artifacts/program/float-conversion";
import { encodeVector } from "../generation/encode-vector.js";
import { startTestServer } from "../testing/test-server.js";

const messages = [{ role: "user", content: "hi" }];

interface VectorList {
  readonly data: readonly {
    readonly embedding?: unknown;
    readonly data?: unknown;
    readonly object: string;
  }[];
}

/** The number that bits stand for, from the definition of such formats. */
function valueOf(bits: number, exponentBits: number, mantissaBits: number): number {
  const bias = 2 ** (exponentBits - 1) - 1;
  const mantissa = bits % 2 ** mantissaBits;
  const exponent = Math.floor(bits / 2 ** mantissaBits) % 2 ** exponentBits;
  return exponent === 0
    ? mantissa * 2 ** (1 - bias - mantissaBits)
    : (1 + mantissa / 2 ** mantissaBits) * 2 ** (exponent - bias);
}

describe("vectors as bytes", () => {
  it("hold the nearest number of the format, of all that it has, and even ones at ties", () => {
    const cases = [
      ["fp8_e4m3", 4, 3, 0x7e],
      ["fp8_e5m2", 5, 2, 0x7b],
      ["float16", 5, 10, 0x7bff],
      ["bfloat16", 8, 7, 0x7f7f],
    ] as const;
    for (const [dtype, exponentBits, mantissaBits, largest] of cases) {
      const bytes = dtype.startsWith("fp8") ? 1 : 2;
      const encode = (value: number): number =>
        encodeVector(Float32Array.of(value), dtype, "little").readUIntLE(0, bytes);
      for (let bits = 0; bits < largest; bits += 1) {
        const [value, next] = [
          valueOf(bits, exponentBits, mantissaBits),
          valueOf(bits + 1, exponentBits, mantissaBits),
        ];
        assert.equal(encode(value), bits, `${dtype} ${bits}`);
        if (bits > 0) assert.equal(encode(-value), bits + 2 ** (8 * bytes - 1));
        const middle = (value + next) / 2;
        assert.equal(encode(middle), bits % 2 === 0 ? bits : bits + 1);
      }
      assert.ok(encode(Number.POSITIVE_INFINITY) > largest);
    }
    assert.equal(
      singleBitsOfHalf(encodeVector(Float32Array.of(1.5), "float16", "little").readUInt16LE()),
      0x3fc00000,
    );
  });

  it("are sent in base64, or as the body with what describes it in a header", async () => {
    await using server = await startTestServer({ servedModelNames: ["modèle 漢"] });
    const plain = (await (await server.post("/v1/embeddings", { input: ["a", "bc"] })).json()) as VectorList;
    const expected = plain.data.map(({ embedding }) => Float32Array.from(embedding as number[]));
    for (const embed_dtype of ["float32", "float16", "bfloat16", "fp8_e4m3", "fp8_e5m2"] as const) {
      for (const endianness of ["big", "little", "native"] as const) {
        const parts = expected.map((vector) => encodeVector(vector, embed_dtype, endianness));
        const fields = { input: ["a", "bc"], embed_dtype, endianness };
        const text = await server.post("/v1/embeddings", { ...fields, encoding_format: "base64" });
        const { data } = (await text.json()) as VectorList;
        assert.deepEqual(
          data.map(({ embedding }) => embedding),
          parts.map((part) => part.toString("base64")),
        );
        for (const encoding_format of ["bytes", "bytes_only"]) {
          const answer = await server.post("/pooling", { ...fields, encoding_format });
          assert.deepEqual(Buffer.from(await answer.arrayBuffer()), Buffer.concat(parts));
          const header = answer.headers.get("metadata");
          assert.equal(header === null, encoding_format === "bytes_only");
          if (header === null) continue;
          const metadata = JSON.parse(header) as { model: string; data: readonly object[] };
          assert.equal(metadata.model, "modèle 漢");
          const size = parts[0]?.length ?? 0;
          assert.deepEqual(metadata.data[1], {
            index: 1,
            embed_dtype,
            endianness,
            start: size,
            end: 2 * size,
            shape: metadata.data[1] && (metadata.data[1] as { shape: unknown }).shape,
          });
        }
      }
    }
  });
});

describe("pooling", () => {
  it("embeds a conversation as the template lays it out, without asking for an answer", async () => {
    await using server = await startTestServer();
    const answer = await server.post("/pooling", { messages, task: "embed" });
    assert.equal(((await answer.json()) as VectorList).data[0]?.object, "pooling");
    assert.equal(server.model.rendered.at(-1)?.addGenerationPrompt, false);
    await (await server.post("/v1/embeddings", { messages, add_generation_prompt: true })).text();
    assert.equal(server.model.rendered.at(-1)?.addGenerationPrompt, true);
  });

  it("refuses what it cannot do by name", async () => {
    await using server = await startTestServer();
    const cases = [
      ["/pooling", { input: "a", task: "classify" }, "task"],
      ["/pooling", { input: "a", messages }, "either input or messages"],
      ["/v1/embeddings", {}, "either input or messages"],
      ["/v1/embeddings", { input: "a", normalize: true, use_activation: false }, "use_activation"],
      ["/v1/embeddings", { input: "a", padding: "max_length" }, "padding"],
      ["/score", { text_1: "a", data_2: "b" }, "one pair"],
      ["/classify", { input: "a" }, "head"],
    ] as const;
    for (const [path, body, named] of cases) {
      const answer = await server.post(path, body);
      assert.equal(answer.status, 400, path);
      assert.ok((await answer.text()).includes(named), named);
    }
    for (const path of ["/sleep", "/wake_up"]) assert.equal((await server.post(path, {})).status, 404);
  });

  it("salts cached prefixes of embeddings", async () => {
    await using server = await startTestServer();
    await (await server.post("/v1/embeddings", { input: "a", cache_salt: "s" })).text();
    assert.equal(server.model.engine.embeddings.at(-1)?.cacheSalt, "s");
  });

  it("compares pairs under every name for them", async () => {
    await using server = await startTestServer();
    for (const [left, right] of [
      ["text_1", "text_2"],
      ["data_1", "data_2"],
      ["queries", "documents"],
      ["queries", "items"],
    ] as const) {
      const answer = await server.post("/score", { [left]: "a", [right]: ["b", "c"] });
      assert.equal(((await answer.json()) as VectorList).data.length, 2);
    }
  });
});

describe("vLLM's own endpoints", () => {
  it("say what the tokenizer is, where the operator allows it", async () => {
    await using closed = await startTestServer();
    assert.equal((await fetch(`${closed.url}/tokenizer_info`)).status, 404);
    await using server = await startTestServer({ enableTokenizerInfoEndpoint: true });
    const info = (await (await fetch(`${server.url}/tokenizer_info`)).json()) as Record<string, unknown>;
    assert.equal(info["vocab_size"], server.model.tokenizer.vocabSize);
  });

  it("forget cached prefixes, or say that they cannot yet", async (context) => {
    await using server = await startTestServer();
    assert.equal((await server.post("/reset_prefix_cache", "")).status, 200);
    context.mock.method(server.model.engine, "resetPrefixCache", () => false);
    assert.equal((await server.post("/reset_prefix_cache", "")).status, 503);
    assert.deepEqual(await (await fetch(`${server.url}/is_sleeping`)).json(), { is_sleeping: false });
  });
});
