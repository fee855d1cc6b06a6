import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { dequantize } from "../testing/dequantize.js";
import { mutateFile } from "@octavo/text/testing/mutate";
import { TestRandom } from "@octavo/text/testing/random";
import { encodeSafetensors, joinSafetensors, type TensorToWrite } from "../testing/write-safetensors.js";
import { ArtifactFile } from "@octavo/text/files/artifact-file";
import {
  plainTensor,
  readSafetensorsHeader,
  type SafetensorsHeader,
} from "../safetensors/safetensors-file.js";
import { readSafetensorsFolder } from "../safetensors/safetensors-folder.js";
import { assertArtifactError, assertRefused } from "../testing/artifact-assertions.js";

const scratch = mkdtempSync(join(tmpdir(), "octavo-safetensors-"));
after(() => rmSync(scratch, { recursive: true, force: true }));
let counter = 0;

function save(bytes: Uint8Array): string {
  const path = join(scratch, `${counter++}.safetensors`);
  writeFileSync(path, bytes);
  return path;
}

function folder(files: Readonly<Record<string, Uint8Array | string>>): string {
  const path = join(scratch, `folder-${counter++}`);
  mkdirSync(path);
  for (const [name, content] of Object.entries(files)) writeFileSync(join(path, name), content);
  return path;
}

function sample(): TensorToWrite[] {
  const random = new TestRandom(5);
  return [
    { name: "a", type: "f32", shape: [2, 3], data: random.floats(6, 1) },
    { name: "b", type: "bf16", shape: [4], data: random.floats(4, 1) },
    { name: "c", type: "f16", shape: [], data: random.floats(1, 1) },
    { name: "empty", type: "f32", shape: [0, 7], data: new Float32Array(0) },
  ];
}

/** A file whose header is the given object over `dataBytes` bytes. */
function withHeader(header: unknown, dataBytes: number): string {
  return save(joinSafetensors(JSON.stringify(header), Buffer.alloc(dataBytes)));
}

const tensor = (
  begin: number,
  end: number,
  shape: unknown = [(end - begin) / 4],
  dtype: unknown = "F32",
): unknown => {
  return { dtype, shape, data_offsets: [begin, end] };
};

describe("safetensors header", () => {
  it("finds every tensor where it was written", () => {
    const written = sample();
    const header = readSafetensorsHeader(save(encodeSafetensors(written, { format: "pt", note: "x" })));
    assert.equal(header.metadata.get("note"), "x");
    assert.deepEqual(
      header.tensors.map((stored) => {
        const { name, type, shape } = plainTensor(stored, "");
        return { name, type, shape };
      }),
      written.map(({ name, type, shape }) => ({ name, type, shape })),
    );
    const first = header.tensors[0];
    assert.ok(first !== undefined);
    const file = ArtifactFile.open(first.path);
    const bytes = file.read(first.offset, first.byteLength);
    file[Symbol.dispose]();
    assert.deepEqual(dequantize("f32", bytes), written[0]?.data);
  });

  it("takes tensors in any order of names", () => {
    const path = withHeader({ later: tensor(8, 16), __metadata__: {}, earlier: tensor(0, 8) }, 16);
    assert.equal(readSafetensorsHeader(path).tensors.length, 2);
  });

  it("leaves out computed buffers of old exporters, whatever their dtype", () => {
    const path = withHeader(
      { "model.embeddings.position_ids": tensor(0, 8, [1], "I64"), w: tensor(8, 12) },
      12,
    );
    assert.deepEqual(
      readSafetensorsHeader(path).tensors.map(({ name }) => name),
      ["w"],
    );
  });

  const broken: readonly (readonly [string, () => string, RegExp])[] = [
    ["an empty file", () => save(new Uint8Array(0)), /too short/],
    [
      "a header longer than the file",
      () => save(Buffer.from([0xff, 0xff, 0, 0, 0, 0, 0, 0, 0x7b])),
      /truncated/,
    ],
    ["a header beyond the format's bound", () => save(Buffer.alloc(16, 0xff)), /claims a header of/],
    ["text that is not JSON", () => save(joinSafetensors("{oops}", Buffer.alloc(0))), /invalid JSON/],
    ["a header that is no object", () => save(joinSafetensors("[]", Buffer.alloc(0))), /does not start with/],
    [
      "invalid UTF-8",
      () =>
        save(Buffer.concat([Buffer.from([4, 0, 0, 0, 0, 0, 0, 0]), Buffer.from([0x7b, 0xff, 0xfe, 0x7d])])),
      /UTF-8/,
    ],
    [
      "absurd nesting",
      () => save(joinSafetensors(`{"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}`, Buffer.alloc(0))),
      /nests/,
    ],
    [
      "a name twice",
      () =>
        save(
          joinSafetensors(
            `{"a":${JSON.stringify(tensor(0, 4))},"a":${JSON.stringify(tensor(4, 8))}}`,
            Buffer.alloc(8),
          ),
        ),
      /"a" twice/,
    ],
    [
      "a field twice",
      () =>
        save(
          joinSafetensors(
            `{"a":{"dtype":"F32","shape":[1],"shape":[1],"data_offsets":[0,4]}}`,
            Buffer.alloc(4),
          ),
        ),
      /twice/,
    ],
    ["overlapping tensors", () => withHeader({ a: tensor(0, 8), b: tensor(4, 12) }, 12), /overlaps/],
    ["the same bytes for two tensors", () => withHeader({ a: tensor(0, 8), b: tensor(0, 8) }, 8), /overlaps/],
    ["a hole", () => withHeader({ a: tensor(0, 4), b: tensor(8, 12) }, 12), /hole/],
    ["bytes after the last tensor", () => withHeader({ a: tensor(0, 4) }, 12), /8 bytes after/],
    ["data that ends early", () => withHeader({ a: tensor(0, 16) }, 12), /truncated/],
    ["reversed offsets", () => withHeader({ a: tensor(8, 4, [1]) }, 12), /before it begins/],
    ["negative offsets", () => withHeader({ a: tensor(-4, 0, [1]) }, 4), /data_offsets/],
    ["offsets beyond 2^53", () => withHeader({ a: tensor(0, 2 ** 60, [2 ** 58]) }, 4), /data_offsets|shape/],
    ["a length that contradicts the shape", () => withHeader({ a: tensor(0, 8, [3]) }, 8), /takes 12/],
    [
      "a shape whose product overflows",
      () => withHeader({ a: tensor(0, 4, [2 ** 30, 2 ** 30]) }, 4),
      /impossible shape/,
    ],
    [
      "an overflow hidden by a zero",
      () => withHeader({ a: tensor(0, 0, [2 ** 40, 2 ** 40, 0]) }, 0),
      /impossible shape/,
    ],
    ["fractional sizes", () => withHeader({ a: tensor(0, 4, [1.5]) }, 4), /shape/],
    [
      "nine dimensions",
      () => withHeader({ a: tensor(0, 4, [1, 1, 1, 1, 1, 1, 1, 1, 1]) }, 4),
      /9 dimensions/,
    ],
    ["an unknown dtype", () => withHeader({ a: tensor(0, 4, [1], "F23") }, 4), /unknown dtype "F23"/],
    [
      "a dtype from the prototype",
      () => withHeader({ a: tensor(0, 4, [1], "constructor") }, 4),
      /unknown dtype/,
    ],
    ["a tensor that is no object", () => withHeader({ a: 3 }, 0), /not described/],
    ["metadata that is no object", () => withHeader({ __metadata__: [] }, 0), /__metadata__/],
    ["metadata values that are no strings", () => withHeader({ __metadata__: { a: 1 } }, 0), /__metadata__/],
    ["a folder in place of a file", () => folder({}), /regular file|EISDIR/],
  ];
  for (const [what, make, message] of broken) {
    it(`refuses ${what}`, () =>
      assertRefused(() => readSafetensorsHeader(make()), "artifact_invalid", message));
  }

  it("names the tensor and dtype that no kernel takes", () => {
    const path = withHeader({ "model.w": tensor(0, 4, [4], "F8_E4M3") }, 4);
    const [found] = readSafetensorsHeader(path).tensors;
    assert.ok(found !== undefined);
    assertRefused(() => plainTensor(found, "hint"), "artifact_unsupported", /"model\.w" is F8_E4M3; hint/);
  });

  it("survives mutations: each opens soundly or is refused by an artifact code", () => {
    const valid = Buffer.from(encodeSafetensors(sample()));
    const headerBytes = 8 + Number(valid.readBigUInt64LE(0));
    const random = new TestRandom(2026);
    let opened = 0;
    const rounds = 1000;
    const path = join(scratch, "mutated.safetensors");
    for (let round = 0; round < rounds; round++) {
      const bytes = mutateFile(valid, headerBytes, random);
      writeFileSync(path, bytes);
      let header: SafetensorsHeader;
      try {
        header = readSafetensorsHeader(path);
      } catch (error) {
        assertArtifactError(error, `round ${round}`);
        continue;
      }
      opened++;
      for (const { offset, byteLength, name } of header.tensors) {
        assert.ok(
          offset >= 0 && offset + byteLength <= bytes.length,
          `round ${round}: ${name} reaches beyond the file`,
        );
      }
    }
    assert.ok(opened > 0 && opened < rounds, `${opened} of ${rounds} mutations opened`);
  });
});

describe("safetensors folder", () => {
  const shard = (...names: string[]): Uint8Array => {
    return encodeSafetensors(
      names.map((name) => ({ name, type: "f32", shape: [1], data: new Float32Array(1) })),
    );
  };
  const index = (weightMap: unknown): string =>
    JSON.stringify({ metadata: { total_size: 8 }, weight_map: weightMap });

  it("joins shards", () => {
    const path = folder({
      "one.safetensors": shard("a"),
      "two.safetensors": shard("b"),
      "model.safetensors.index.json": index({ a: "one.safetensors", b: "two.safetensors" }),
    });
    assert.deepEqual([...(readSafetensorsFolder(path)?.keys() ?? [])].toSorted(), ["a", "b"]);
  });

  it("follows links, as the hub's cache has them", () => {
    const blobs = folder({ blob: shard("a") });
    const path = folder({});
    symlinkSync(join(blobs, "blob"), join(path, "model.safetensors"));
    assert.ok(readSafetensorsFolder(path)?.has("a"));
  });

  it("names a missing shard", () => {
    const path = folder({ "model.safetensors.index.json": index({ a: "gone.safetensors" }) });
    assertRefused(
      () => readSafetensorsFolder(path),
      "artifact_not_found",
      /shard gone\.safetensors, which is missing/,
    );
  });

  for (const name of [
    "../evil.safetensors",
    "/etc/passwd",
    "sub/x.safetensors",
    "..",
    "a\\b",
    "c:x",
    "nul\0",
    7,
  ]) {
    it(`refuses the shard name ${JSON.stringify(name)}`, () => {
      const path = folder({ "model.safetensors.index.json": index({ a: name }) });
      assertRefused(() => readSafetensorsFolder(path), "artifact_invalid", /same folder/);
    });
  }

  it("refuses tensors that are missing, misplaced or there twice", () => {
    const cases: readonly (readonly [Record<string, string>, Record<string, Uint8Array>, RegExp])[] = [
      [
        { a: "one.safetensors", b: "one.safetensors" },
        { "one.safetensors": shard("a") },
        /"b" in one\.safetensors, which does not hold it/,
      ],
      [
        { a: "one.safetensors", b: "one.safetensors", c: "two.safetensors" },
        { "one.safetensors": shard("a"), "two.safetensors": shard("b", "c") },
        /"b" in one\.safetensors, but it lies in/,
      ],
      [
        { a: "one.safetensors", b: "two.safetensors" },
        { "one.safetensors": shard("a"), "two.safetensors": shard("a", "b") },
        /"a", which is in .*one\.safetensors too/,
      ],
    ];
    for (const [map, shards, message] of cases) {
      const path = folder({ ...shards, "model.safetensors.index.json": index(map) });
      assertRefused(() => readSafetensorsFolder(path), "artifact_invalid", message);
    }
  });

  it("refuses an index of another form, and loose files without one", () => {
    for (const text of ["{", "[]", "null", `{"weight_map":[]}`]) {
      const path = folder({ "model.safetensors.index.json": text });
      assertRefused(() => readSafetensorsFolder(path), "artifact_invalid", /index\.json/);
    }
    const loose = folder({ "x.safetensors": shard("a"), "y.safetensors": shard("b") });
    assertRefused(() => readSafetensorsFolder(loose), "artifact_invalid", /belong together/);
  });

  it("notices a file that was cut after its header was written", () => {
    const path = folder({ "model.safetensors": shard("a", "b") });
    truncateSync(join(path, "model.safetensors"), 130);
    assertRefused(() => readSafetensorsFolder(path), "artifact_invalid", /truncated/);
  });
});
