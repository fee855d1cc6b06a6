import assert from "node:assert/strict";
import { copyFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it } from "node:test";
import { artifactDigest } from "./artifact-digest.js";
import type { Checkpoint, TensorInfo } from "./checkpoint.js";

const tensor = (path: string, name: string, offset: number, byteLength: number): [string, TensorInfo] => [
  name,
  { name, type: "f32", shape: [byteLength / 4], path, offset, byteLength },
];

it("an artifact's digest follows its content, wherever its files lie", async () => {
  const folder = await mkdtemp(join(tmpdir(), "octavo-digest-"));
  try {
    const [first, copy] = [join(folder, "a"), join(folder, "b")];
    await writeFile(
      first,
      Uint8Array.from({ length: 40_000 }, (_, at) => at % 251),
    );
    await copyFile(first, copy);
    const of = (path: string): Promise<string> => {
      const tensors: Checkpoint["tensors"] = new Map([
        tensor(path, "x", 0, 20_000),
        tensor(path, "y", 20_000, 20_000),
      ]);
      return artifactDigest({ tensors });
    };
    const digest = await of(first);
    assert.match(digest, /^sha256:[0-9a-f]{64}$/);
    assert.equal(await of(copy), digest);
    const renamed = new Map([tensor(first, "x", 0, 20_000), tensor(first, "z", 20_000, 20_000)]);
    assert.notEqual(await artifactDigest({ tensors: renamed }), digest);
    const bytes = await readFile(copy);
    bytes[39_999] = 7;
    await writeFile(copy, bytes);
    assert.notEqual(await of(copy), digest);
  } finally {
    await rm(folder, { recursive: true });
  }
});
