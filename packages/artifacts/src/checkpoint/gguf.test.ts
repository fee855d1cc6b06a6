import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { assertArtifactError, assertRefused } from "../testing/artifact-assertions.js";
import { dequantize } from "../testing/dequantize.js";
import { mutateFile } from "@octavo/text/testing/mutate";
import type { StoredType } from "../testing/quantize.js";
import { TestRandom } from "@octavo/text/testing/random";
import { tinyGgufMetadata, tinyGgufTensors, tinyModel } from "../testing/tiny-checkpoint.js";
import { encodeGguf, type GgufToWrite, type GgufValue } from "../testing/write-gguf.js";
import type { TensorToWrite } from "../testing/write-safetensors.js";
import { ArtifactFile } from "@octavo/text/files/artifact-file";
import { openGguf } from "../gguf/checkpoint.js";
import { GgufStrings } from "@octavo/text/files/gguf-strings";
import { readGgufHeader, type GgufHeader, type GgufMetadata } from "../gguf/file.js";
import { ggufName, huggingFaceName } from "../gguf/names.js";

const scratch = mkdtempSync(join(tmpdir(), "octavo-gguf-"));
after(() => rmSync(scratch, { recursive: true, force: true }));
let counter = 0;

function save(bytes: Uint8Array): string {
  const path = join(scratch, `${counter++}.gguf`);
  writeFileSync(path, bytes);
  return path;
}

const values: Record<string, GgufValue> = {
  "general.architecture": { type: "string", value: "llama" },
  "t.u8": { type: "u8", value: 200 },
  "t.i8": { type: "i8", value: -5 },
  "t.u16": { type: "u16", value: 60_000 },
  "t.i16": { type: "i16", value: -300 },
  "t.u32": { type: "u32", value: 4_000_000_000 },
  "t.i32": { type: "i32", value: -7 },
  "t.f32": { type: "f32", value: 0.5 },
  "t.f64": { type: "f64", value: 0.1 },
  "t.u64": { type: "u64", value: 5_000_000_000 },
  "t.huge": { type: "u64", value: 2n ** 60n },
  "t.i64": { type: "i64", value: -5_000_000_000 },
  "t.bool": { type: "bool", value: true },
  "t.text": { type: "string", value: "żółć 🦉\n\0" },
  "t.strings": {
    type: "array",
    of: "string",
    value: ["a", "", "Ġthe", "🦉🦉", "x".repeat(300), "é".repeat(70), "end"],
  },
  "t.floats": { type: "array", of: "f32", value: [1, -2.5, 3] },
  "t.ints": { type: "array", of: "i32", value: [1, -2, 3] },
  "t.longs": { type: "array", of: "u64", value: [1, 2] },
  "t.flags": { type: "array", of: "bool", value: [true, false] },
  "t.none": { type: "array", of: "string", value: [] },
};

function sampleTensors(): TensorToWrite[] {
  const random = new TestRandom(9);
  return (["f32", "f16", "bf16", "q4_0", "q5_0", "q8_0", "q4_k", "q5_k", "q6_k"] as const).map((type) => {
    return { name: `tensor.${type}`, type, shape: [3, 256], data: random.floats(768, 1) };
  });
}

function read(file: Partial<GgufToWrite>): GgufHeader {
  return readGgufHeader(save(encodeGguf({ metadata: {}, tensors: [], ...file })));
}

function stringsIn(metadata: GgufMetadata, key: string): GgufStrings {
  const strings = metadata.get(key);
  assert.ok(strings instanceof GgufStrings);
  return strings;
}

/** A file whose header is patched by hand. */
function patched(patch: (bytes: Buffer) => void, file: Partial<GgufToWrite> = {}): string {
  const bytes = Buffer.from(encodeGguf({ metadata: {}, tensors: [], ...file }));
  patch(bytes);
  return save(bytes);
}

/** One f32 tensor "w" with 8 elements: name at 24, dimensions' count at 33, sizes at 37, then type and offset. */
const oneTensor: Partial<GgufToWrite> = {
  tensors: [{ name: "w", type: "f32", shape: [8], data: new Float32Array(8) }],
};

describe("GGUF header", () => {
  it("reads every kind of value", () => {
    const { metadata, version } = read({ metadata: values });
    assert.equal(version, 3);
    for (const [key, { type, value }] of Object.entries(values)) {
      const found = metadata.get(key);
      if (type !== "array") assert.equal(found, value, key);
      else assert.deepEqual([...(found as Iterable<unknown>)], value, key);
    }
    assert.ok(metadata.get("t.floats") instanceof Float32Array);
    assert.ok(metadata.get("t.ints") instanceof Int32Array);
  });

  it("reads strings of any length on either side of the window's edge", () => {
    const random = new TestRandom(3);
    const strings = Array.from({ length: 60_000 }, (_, i) => {
      return (
        (i % 500 === 0 ? "ü".repeat(400) : String.fromCodePoint(0x61 + (random.below(0x20_000) % 0xd000))) +
        "s".repeat(random.below(140))
      );
    });
    const { metadata } = read({ metadata: { s: { type: "array", of: "string", value: strings } } });
    assert.deepEqual([...stringsIn(metadata, "s")], strings);
    const { bytes, starts, gap } = stringsIn(metadata, "s").pack();
    assert.deepEqual(
      strings.map((_, i) => Buffer.from(bytes.subarray(starts[i], (starts[i + 1] ?? 0) - gap)).toString()),
      strings,
    );
  });

  it("keeps strings apart when one of them is not valid UTF-8", () => {
    const path = patched((bytes) => bytes.writeUInt8(0xff, bytes.indexOf("BAD")), {
      metadata: { s: { type: "array", of: "string", value: ["first", "BAD", "last"] } },
    });
    const strings = stringsIn(readGgufHeader(path).metadata, "s");
    assert.deepEqual([...strings], ["first", "\uFFFDAD", "last"]);
    const { bytes, ...rest } = strings.pack();
    assert.equal(Buffer.from(bytes).toString(), "first\uFFFDADlast");
    assert.deepEqual(rest, { starts: Uint32Array.of(0, 5, 10, 14), gap: 0 });
  });

  it("finds tensors of every type where they were written", () => {
    const written = sampleTensors();
    for (const alignment of [32, 8, 4096]) {
      const header = read({ tensors: written, alignment, metadata: values });
      for (const [index, tensor] of header.tensors.entries()) {
        assert.deepEqual(tensor.shape, [3, 256]);
        assert.equal(tensor.offset % alignment, 0);
        const file = ArtifactFile.open(tensor.path);
        const found = dequantize(tensor.type as StoredType, file.read(tensor.offset, tensor.byteLength));
        file[Symbol.dispose]();
        const wanted = written[index]?.data as Float32Array;
        const worst = Math.max(...found.map((value, i) => Math.abs(value - (wanted[i] ?? NaN))));
        assert.ok(worst < 0.15, `${tensor.name}: off by ${worst}`);
      }
    }
  });

  it("tolerates version 2", () => assert.equal(read({ version: 2, ...oneTensor }).tensors.length, 1));

  const broken: readonly (readonly [string, () => string, RegExp])[] = [
    ["an empty file", () => save(new Uint8Array(0)), /too short/],
    ["another magic", () => patched((bytes) => bytes.write("GGML")), /does not start with GGUF/],
    [
      "more tensors than the file could hold",
      () => patched((bytes) => bytes.writeBigUInt64LE(2n ** 40n, 8)),
      /claims .* tensors/,
    ],
    [
      "more keys than the file could hold",
      () => patched((bytes) => bytes.writeBigUInt64LE(2n ** 63n, 16)),
      /claims .* metadata keys/,
    ],
    [
      "a string longer than the file",
      () =>
        patched((bytes) => bytes.writeBigUInt64LE(2n ** 50n, 24), {
          metadata: { a: { type: "u8", value: 1 } },
        }),
      /claims .* bytes of a metadata key/,
    ],
    [
      "an array longer than the file",
      () =>
        patched((bytes) => bytes.writeBigUInt64LE(2n ** 34n, 41), {
          metadata: { a: { type: "array", of: "f32", value: [1] } },
        }),
      /claims .* elements/,
    ],
    [
      "an unknown value type",
      () => patched((bytes) => bytes.writeUInt32LE(77, 33), { metadata: { a: { type: "u8", value: 1 } } }),
      /unknown value type 77/,
    ],
    [
      "an array of arrays",
      () =>
        patched((bytes) => bytes.writeUInt32LE(9, 37), {
          metadata: { a: { type: "array", of: "f32", value: [1] } },
        }),
      /arrays cannot hold/,
    ],
    [
      "a key twice",
      () =>
        patched((bytes) => bytes.write("a", bytes.indexOf("b")), {
          metadata: { a: { type: "u8", value: 1 }, b: { type: "u8", value: 1 } },
        }),
      /"a" twice/,
    ],
    [
      "a tensor twice",
      () =>
        patched((bytes) => bytes.write("w", bytes.indexOf("v")), {
          tensors: ["w", "v"].map((name) => ({ name, type: "f32", shape: [8], data: new Float32Array(8) })),
        }),
      /"w" twice/,
    ],
    ["five dimensions", () => patched((bytes) => bytes.writeUInt32LE(5, 33), oneTensor), /5 dimensions/],
    ["no dimensions", () => patched((bytes) => bytes.writeUInt32LE(0, 33), oneTensor), /0 dimensions/],
    [
      "an empty dimension",
      () => patched((bytes) => bytes.writeBigUInt64LE(0n, 37), oneTensor),
      /impossible dimension/,
    ],
    [
      "a dimension beyond 2^53",
      () => patched((bytes) => bytes.writeBigUInt64LE(2n ** 62n, 37), oneTensor),
      /impossible dimension/,
    ],
    [
      "a size that overflows",
      () => patched((bytes) => bytes.writeBigUInt64LE(2n ** 52n, 37), oneTensor),
      /impossible shape/,
    ],
    [
      "a tensor beyond the end",
      () => patched((bytes) => bytes.writeBigUInt64LE(64n, 37), oneTensor),
      /truncated/,
    ],
    [
      "an offset beyond the end",
      () => patched((bytes) => bytes.writeBigUInt64LE(2n ** 40n, 49), oneTensor),
      /truncated/,
    ],
    [
      "an unaligned offset",
      () => patched((bytes) => bytes.writeBigUInt64LE(4n, 49), oneTensor),
      /not aligned/,
    ],
    [
      "rows that do not fill blocks",
      () => patched((bytes) => bytes.writeUInt32LE(8, 45), oneTensor),
      /not a multiple of the 32/,
    ],
    [
      "an odd alignment",
      () => save(encodeGguf({ metadata: { "general.alignment": { type: "u32", value: 48 } }, tensors: [] })),
      /alignment/,
    ],
    [
      "overlapping tensors",
      () => {
        const tensors = ["v", "w"].map((name): TensorToWrite => ({
          name,
          type: "f32",
          shape: [16],
          data: new Float32Array(16),
        }));
        return patched((bytes) => bytes.writeBigUInt64LE(32n, bytes.indexOf("w") + 17), { tensors });
      },
      /overlaps/,
    ],
  ];
  for (const [what, make, message] of broken) {
    it(`refuses ${what}`, () => assertRefused(() => readGgufHeader(make()), "artifact_invalid", message));
  }

  it("names what it does not support", () => {
    const bigEndian = patched((bytes) => bytes.writeUInt32BE(3, 4));
    assertRefused(() => readGgufHeader(bigEndian), "artifact_unsupported", /big-endian/);
    const first = patched((bytes) => bytes.writeUInt32LE(1, 4));
    assertRefused(() => readGgufHeader(first), "artifact_unsupported", /version 1/);
    const known = patched((bytes) => bytes.writeUInt32LE(15, 45), oneTensor);
    assertRefused(
      () => readGgufHeader(known),
      "artifact_unsupported",
      /"w" is Q8_K \(type 15\); supported are F32/,
    );
    const unknown = patched((bytes) => bytes.writeUInt32LE(9999, 45), oneTensor);
    assertRefused(() => readGgufHeader(unknown), "artifact_unsupported", /type 9999/);
  });

  it("refuses every truncation", () => {
    const bytes = encodeGguf({ metadata: values, tensors: sampleTensors().slice(0, 2) });
    for (let length = 0; length < bytes.length - 64; length += 37) {
      assertRefused(() => readGgufHeader(save(bytes.subarray(0, length))), "artifact_invalid", /./);
    }
  });

  it("survives mutations: each opens soundly or is refused by an artifact code", () => {
    const model = tinyModel({ type: "q8_0", numLayers: 1 });
    const metadata = { ...values, ...tinyGgufMetadata(model) };
    const valid = encodeGguf({ metadata, tensors: tinyGgufTensors(model) });
    const path = save(valid);
    const headerBytes = Math.min(...readGgufHeader(path).tensors.map((tensor) => tensor.offset));
    const random = new TestRandom(77);
    const rounds = 1000;
    let opened = 0;
    for (let round = 0; round < rounds; round++) {
      const bytes = mutateFile(valid, headerBytes, random);
      writeFileSync(path, bytes);
      let tensors: Iterable<{ offset: number; byteLength: number; name: string }>;
      try {
        tensors = openGguf(path, "mutated").tensors.values();
      } catch (error) {
        assertArtifactError(error, `round ${round}`);
        continue;
      }
      opened++;
      for (const { offset, byteLength, name } of tensors) {
        assert.ok(offset + byteLength <= bytes.length, `round ${round}: ${name} reaches beyond the file`);
      }
    }
    assert.ok(opened > 0 && opened < rounds, `${opened} of ${rounds} mutations opened`);
  });
});

describe("GGUF names", () => {
  it("maps there and back", () => {
    const pairs = {
      "token_embd.weight": "model.embed_tokens.weight",
      "output_norm.weight": "model.norm.weight",
      "output.weight": "lm_head.weight",
      "blk.0.attn_norm.weight": "model.layers.0.input_layernorm.weight",
      "blk.31.attn_q.weight": "model.layers.31.self_attn.q_proj.weight",
      "blk.1.attn_k.bias": "model.layers.1.self_attn.k_proj.bias",
      "blk.1.attn_v.weight": "model.layers.1.self_attn.v_proj.weight",
      "blk.1.attn_output.weight": "model.layers.1.self_attn.o_proj.weight",
      "blk.1.attn_q_norm.weight": "model.layers.1.self_attn.q_norm.weight",
      "blk.1.attn_k_norm.weight": "model.layers.1.self_attn.k_norm.weight",
      "blk.1.ffn_norm.weight": "model.layers.1.post_attention_layernorm.weight",
      "blk.1.ffn_gate.weight": "model.layers.1.mlp.gate_proj.weight",
      "blk.1.ffn_up.weight": "model.layers.1.mlp.up_proj.weight",
      "blk.1.ffn_down.weight": "model.layers.1.mlp.down_proj.weight",
    };
    for (const [gguf, name] of Object.entries(pairs)) {
      assert.equal(huggingFaceName(gguf), name);
      assert.equal(ggufName(name), gguf);
    }
    for (const odd of [
      "blk.01.attn_q.weight",
      "blk.1.constructor.weight",
      "blk.1.attn_q.scale",
      "constructor",
      "",
    ]) {
      assert.equal(huggingFaceName(odd), undefined, odd);
    }
  });
});
