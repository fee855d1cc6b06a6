import { ServedAdapter } from "../adapters/served-adapter.js";
import { FakeAdapter, FakeBackend } from "../testing/fakes/fake-backend.js";
import { eosToken, letterTokenizer } from "../testing/fakes/engine-fixture.js";
import { type ModelUnderTest, scheduleProperties } from "../testing/schedules/schedule-properties.js";

function fakeModel(numAdapters: number, hasState = false): () => ModelUnderTest {
  return () => {
    const { vocabSize } = letterTokenizer;
    const backend = new FakeBackend({ vocabSize });
    const adapters = Array.from(
      { length: numAdapters },
      (_, index) =>
        new ServedAdapter(
          { name: `adapter-${index}`, path: "" },
          { handle: new FakeAdapter(index + 1), byteLength: 0, rank: 1 },
        ),
    );
    return {
      parts: {
        ...(numAdapters > 0 && { adapters }),
        backend,
        program: backend.program,
        tokenizer: letterTokenizer,
        vocabSize,
        hiddenSize: 8,
        eosTokenIds: [eosToken],
        kv: { layers: [{ numKvHeads: 1, headDim: 8 }], dtype: "f32" },
        maxModelLen: 64,
        ...(hasState && { stateWidths: () => [1] }),
      },
      maxStepTokens: 128,
      dispose: () => {
        if (backend.numLiveSamplerStates > 0) throw new Error("sampler states were leaked");
        if (adapters.some(({ numRequests }) => numRequests > 0)) throw new Error("adapters are still held");
      },
    };
  };
}

scheduleProperties("fake backend", fakeModel(0), { numRuns: 60 });
scheduleProperties("fake backend under adapters", fakeModel(4), { numRuns: 60 });
scheduleProperties("fake backend with recurrent state", fakeModel(0, true), { numRuns: 120 });
