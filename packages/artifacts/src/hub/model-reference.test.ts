import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { OctavoError } from "@octavo/protocol/errors";
import { checkRepositoryPath, parseModelReference } from "./model-reference.js";

describe("model reference", () => {
  it("reads every form of an id", () => {
    const none = { file: undefined, quantization: undefined };
    assert.deepEqual(parseModelReference("Qwen/Qwen3-0.6B"), {
      repository: "Qwen/Qwen3-0.6B",
      revision: "main",
      ...none,
    });
    assert.deepEqual(parseModelReference("a/b@v1.0"), { repository: "a/b", revision: "v1.0", ...none });
    assert.deepEqual(parseModelReference("a/b@refs/pr/3"), {
      repository: "a/b",
      revision: "refs/pr/3",
      ...none,
    });
    assert.deepEqual(parseModelReference("a/b-GGUF:Q4_K_M"), {
      repository: "a/b-GGUF",
      revision: "main",
      file: undefined,
      quantization: "Q4_K_M",
    });
    assert.equal(parseModelReference("a/b@v1:Q8_0").quantization, "Q8_0");
    assert.equal(parseModelReference("a/b/c.gguf").file, "c.gguf");
    assert.equal(
      parseModelReference("a/b/deep/er/c-00001-of-00002.gguf").file,
      "deep/er/c-00001-of-00002.gguf",
    );
  });

  for (const text of [
    "",
    "gpt2",
    "a/b/c",
    "a//b",
    "/a/b",
    "a/b@",
    "a/b:",
    "a/.hidden",
    "../b",
    "a/..",
    "a/b--c",
    "a/b c",
    "a/b\n",
    "a/b/../../c.gguf",
    "a/b@../../x",
    "a/b@x\\y",
    "https://huggingface.co/a/b",
    `a/${"b".repeat(200)}`,
    `${"a/".repeat(5000)}b.gguf@`,
  ]) {
    it(`refuses ${JSON.stringify(text.slice(0, 60))}`, () => {
      assert.throws(
        () => parseModelReference(text),
        (error: unknown) =>
          error instanceof OctavoError && error.code.startsWith("artifact_") && error.message.length < 600,
      );
    });
  }

  it("lets no path out of a repository", () => {
    for (const path of ["a", "a/b.json", "..a/b..c"]) checkRepositoryPath(path);
    for (const path of ["", "/a", "a/", "a/../b", "..", ".", "a//b", "a\\b", "c:/x", "a\0"]) {
      assert.throws(() => checkRepositoryPath(path), OctavoError, path);
    }
  });
});
