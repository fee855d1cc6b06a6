import { FakeBackend } from "../testing/fake-backend.js";
import { eosToken, letterTokenizer } from "../testing/engine-fixture.js";
import { scheduleProperties } from "../testing/schedule-properties.js";

scheduleProperties(
  "fake backend",
  () => {
    const { vocabSize } = letterTokenizer;
    const backend = new FakeBackend({ vocabSize });
    return {
      parts: {
        backend,
        program: backend.program,
        tokenizer: letterTokenizer,
        vocabSize,
        hiddenSize: 8,
        eosTokenIds: [eosToken],
        kv: { numLayers: 1, numKvHeads: 1, headDim: 8, dtype: "f32" },
        maxModelLen: 64,
      },
      maxStepTokens: 128,
      dispose: () => {
        if (backend.numLiveSamplerStates > 0) throw new Error("sampler states were leaked");
      },
    };
  },
  { numRuns: 60 },
);
