import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { openCheckpoint } from "@octavo/engine";
import { fixtureImage, shapedModels } from "@octavo/artifacts/testing/model-fixtures";
import { describeFiles } from "@octavo/artifacts/checkpoint/describe-files";
import { weightBytes, weightFormats } from "../formats/weight-formats.js";
import { storedWeights } from "../stored.js";
import { totalParameters } from "./model-shape.js";
import { readConfigShape, shapeOf } from "./read-shape.js";

describe("vision towers in a plan", () => {
  for (const name of ["gemma3", "gemma4", "gemma4-small", ...shapedModels])
    test(`${name}: as many elements as the files hold, read for images alone`, async () => {
      const { container } = await openCheckpoint(fixtureImage(name));
      const vision = container?.vision;
      assert.ok(vision !== undefined && "tensors" in vision);
      const tensors = [...vision.tensors.values()];
      const elements = tensors.reduce(
        (sum, { shape }) => sum + shape.reduce((product, size) => product * size, 1),
        0,
      );
      const description = describeFiles(fixtureImage(name));
      const shape = shapeOf(description);
      assert.equal(shape.towerElements, elements);
      const stored = storedWeights(description);
      assert.ok(stored !== undefined);
      // in f32; a token of text reads the text's part
      assert.equal(stored.read.always + stored.read.routed, 4 * totalParameters(shape));
      assert.ok(stored.bytes >= 4 * (totalParameters(shape) + elements));
      const [bf16] = weightFormats;
      const gguf = weightFormats.find(({ name: format }) => format.startsWith("gguf Q8_0"));
      assert.ok(bf16 !== undefined && gguf !== undefined);
      assert.equal(weightBytes(shape, bf16), 2 * (totalParameters(shape) + elements));
      assert.equal(weightBytes(shape, gguf), weightBytes({ ...shape, towerElements: 0 }, gguf));
    });

  test("Gemma 4's of both sizes, from a config alone: as many as transformers' modules have on the device meta", () => {
    const seen = (hiddenSize: number, vision: object): number =>
      readConfigShape("config.json", {
        architectures: ["Gemma4ForConditionalGeneration"],
        model_type: "gemma4",
        text_config: { model_type: "gemma4_text", hidden_size: hiddenSize },
        vision_config: { model_type: "gemma4_vision", ...vision },
      }).towerElements;
    assert.equal(seen(1536, { use_clipped_linears: true }), 168_544_704);
    const large = {
      standardize: true,
      hidden_size: 1152,
      intermediate_size: 4304,
      num_hidden_layers: 27,
      num_attention_heads: 16,
      num_key_value_heads: 16,
      head_dim: 72,
    };
    assert.equal(seen(2816, large), 572_794_416);
  });

  test("gemma-3-4b-it's, from its config alone", () => {
    const json = {
      architectures: ["Gemma3ForConditionalGeneration"],
      model_type: "gemma3",
      mm_tokens_per_image: 256,
      text_config: {
        hidden_size: 2560,
        intermediate_size: 10240,
        model_type: "gemma3_text",
        num_hidden_layers: 34,
        sliding_window: 1024,
      },
      vision_config: {
        hidden_size: 1152,
        image_size: 896,
        intermediate_size: 4304,
        model_type: "siglip_vision_model",
        num_attention_heads: 16,
        num_hidden_layers: 27,
        patch_size: 14,
      },
    };
    // SigLIP So400m at 896 pixels, and the projection to 2,560 columns.
    assert.equal(readConfigShape("config.json", json).towerElements, 416_866_032 + 1152 + 1152 * 2560);
    const refused = { ...json, vision_config: { ...json.vision_config, model_type: "another" } };
    assert.equal(readConfigShape("config.json", refused).towerElements, 0);
  });
});
