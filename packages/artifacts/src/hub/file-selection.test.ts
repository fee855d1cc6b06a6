import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { OctavoError, type ErrorCode } from "@octavo/protocol/errors";
import { selectFiles, type FilePatterns } from "./file-selection.js";
import { parseModelReference } from "./model-reference.js";

function select(
  files: readonly string[],
  id = "a/b",
  patterns?: FilePatterns,
): ReturnType<typeof selectFiles> {
  return selectFiles(parseModelReference(id), files, patterns);
}

function refused(run: () => unknown, code: ErrorCode, message: RegExp): void {
  assert.throws(run, (error: unknown) => {
    assert.ok(error instanceof OctavoError);
    assert.equal(error.code, code);
    assert.match(error.message, message);
    return true;
  });
}

const configs = ["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"];

describe("file selection", () => {
  it("takes configs and one form of the weights", () => {
    const others = [
      "README.md",
      "original/consolidated.00.pth",
      "pytorch_model.bin",
      "onnx/model.onnx",
      "consolidated.safetensors",
    ];
    assert.deepEqual(select([...others, ...configs, "model.safetensors"]), {
      kind: "folder",
      files: [...configs, "model.safetensors"],
      index: undefined,
    });
    const sharded = select([
      ...others,
      ...configs,
      "model-00001-of-00002.safetensors",
      "model.safetensors.index.json",
    ]);
    assert.deepEqual(sharded, {
      kind: "folder",
      files: [...configs, "model.safetensors.index.json"],
      index: "model.safetensors.index.json",
    });
  });

  it("takes template files", () => {
    const files = [
      "config.json",
      "chat_template.jinja",
      "additional_chat_templates/rag.jinja",
      "model.safetensors",
    ];
    assert.deepEqual(select(files).files, files);
  });

  it("prefers safetensors unless a quantisation or file is named", () => {
    const files = [...configs, "model.safetensors", "gguf/b-q8_0.gguf"];
    assert.equal(select(files).kind, "folder");
    assert.deepEqual(select(files, "a/b:Q8_0"), {
      kind: "gguf",
      files: ["gguf/b-q8_0.gguf"],
      entry: "gguf/b-q8_0.gguf",
    });
    assert.equal(select(files, "a/b/gguf/b-q8_0.gguf").kind, "gguf");
  });

  it("tells quantisations apart that begin alike", () => {
    const files = [
      "b.Q4_K_S.gguf",
      "b.Q4_K_M.gguf",
      "b.Q5_K_M.gguf",
      "b-UD-Q4_K_XL.gguf",
      "b.Q4_0.gguf",
      "b.Q4_0_4_4.gguf",
    ];
    const entry = (id: string): unknown => (select(files, id) as { entry?: string }).entry;
    assert.equal(entry("a/b"), "b.Q4_K_M.gguf");
    assert.equal(entry("a/b:q5_k_m"), "b.Q5_K_M.gguf");
    assert.equal(entry("a/b:Q4_0"), "b.Q4_0.gguf");
    assert.equal(entry("a/b:Q4_K_XL"), "b-UD-Q4_K_XL.gguf");
    refused(() => select(files, "a/b:Q4"), "artifact_not_found", /no GGUF file of Q4 /);
    refused(
      () => select(["x-Q8_0.gguf", "y-Q8_0.gguf"], "a/b:Q8_0"),
      "artifact_not_found",
      /several GGUF files of Q8_0/,
    );
    refused(() => select(["x.gguf", "y.gguf"]), "artifact_not_found", /several GGUF files; name one/);
    assert.equal((select(["only.gguf"]) as { entry?: string }).entry, "only.gguf");
  });

  it("takes a split model whole", () => {
    const parts = [1, 2, 3].map((part) => `Q8_0/m-Q8_0-0000${part}-of-00003.gguf`);
    assert.deepEqual(select(parts), { kind: "gguf", files: parts, entry: parts[0] });
    assert.deepEqual(select(parts, `a/b/${parts[1]}`), { kind: "gguf", files: parts, entry: parts[0] });
    refused(() => select(parts.slice(0, 2)), "artifact_not_found", /lacks Q8_0\/m-Q8_0-00003-of-00003\.gguf/);
  });

  it("says what a repository has instead", () => {
    refused(() => select(["pytorch_model.bin"]), "artifact_unsupported", /pickled/);
    refused(() => select(["README.md"]), "artifact_not_found", /no safetensors and no GGUF.*README\.md/);
    refused(() => select([]), "artifact_not_found", /no files/);
  });

  it("matches patterns as Python's fnmatch does", () => {
    const files = [...configs, "model.safetensors", "x/additional.json"];
    assert.deepEqual(select(files, "a/b", { allow: ["*.safetensors", "config.json"] }).files, [
      "config.json",
      "model.safetensors",
    ]);
    assert.deepEqual(select(files, "a/b", { ignore: ["token*", "g?neration_*"] }).files, [
      "config.json",
      "model.safetensors",
    ]);
    refused(
      () => select(files, "a/b", { ignore: ["*.safetensors"] }),
      "artifact_not_found",
      /no safetensors/,
    );
    refused(
      () => select(files, "a/b", { allow: ["model[.]safetensors"] }),
      "artifact_not_found",
      /no safetensors/,
    );
  });
});
