import { createEngine, type LanguageModel, type LLM, type Tokenizer } from "@octavo/engine";
import type { Backend, BufferRef, Matrix, Op, Program } from "@octavo/kernels";

const hiddenSize = 896;
const intermediateSize = 4864;
const numLayers = 24;
const numHeads = 14;
const numKvHeads = 2;
const headDim = 64;
const vocabSize = 151_936;
const maxModelLen = 1024;
const maxNumSeqs = 256;
const maxNumBatchedTokens = 2048;
/** Bytes of 32 weights in GGUF's Q4_0: an f16 scale and 32 nibbles. */
const blockBytes = 18;

/**
 * A model with the shape of Qwen2.5-0.5B in Q4_0 and weights that mean nothing, beside `llm` on the same backend: its
 * steps cost what a small real model's cost. Its ids are read as `llm`'s, so that every token has text. `llm` must outlive it.
 */
export async function halfBillionModel(llm: LLM): Promise<LanguageModel> {
  const { backend } = llm;
  const program = await compile(backend);
  const engine = createEngine({
    backend,
    program,
    tokenizer: foldedTokenizer(llm.tokenizer),
    vocabSize,
    hiddenSize,
    eosTokenIds: [],
    kv: { numLayers, numKvHeads, headDim, dtype: "f16" },
    numBlocks: 4096,
    blockSize: 16,
    maxModelLen,
    maxNumSeqs,
    maxNumBatchedTokens,
  });
  return {
    name: "half-billion",
    engine,
    tokenizer: llm.tokenizer,
    config: llm.config,
    generation: {},
    chatTemplate: llm.chatTemplate,
    namedChatTemplates: llm.namedChatTemplates,
    renderRequestTemplate: (source, input, signal) => llm.renderRequestTemplate(source, input, signal),
    [Symbol.asyncDispose]: async () => {
      await engine[Symbol.asyncDispose]();
      program[Symbol.dispose]();
    },
  };
}

/** Reads each id as one of the inner tokenizer's, whose vocabulary is smaller than the model's. */
function foldedTokenizer(inner: Tokenizer): Tokenizer {
  const lettersFrom = 256;
  const numLetters = inner.vocabSize - lettersFrom - inner.specialTokenIds.size - 16;
  return {
    vocabSize,
    bosTokenId: undefined,
    eosTokenId: undefined,
    specialTokenIds: new Set(),
    encode: (text, options) => inner.encode(text, options),
    encodeAsync: (text, options) => inner.encodeAsync(text, options),
    decode: (ids, options) => inner.decode(ids, options),
    idToToken: (id) => inner.idToToken(id),
    tokenToId: (token) => inner.tokenToId(token),
    tokenBytes: (id) => inner.tokenBytes(id),
    createDetokenizer: (options) => {
      const detokenizer = inner.createDetokenizer(options);
      return {
        push: (id) => detokenizer.push(lettersFrom + (id % numLetters)),
        flush: () => detokenizer.flush(),
      };
    },
  };
}

async function compile(backend: Backend): Promise<Program> {
  const embedding = await matrix(backend, vocabSize, hiddenSize);
  const norm = backend.createVector([
    {
      type: "f32",
      length: hiddenSize,
      bytes: { data: new Uint8Array(new Float32Array(hiddenSize).fill(1).buffer) },
      name: "norm",
    },
  ]);
  const widths = [
    hiddenSize,
    hiddenSize,
    hiddenSize,
    (numHeads + 2 * numKvHeads) * headDim,
    numHeads * headDim,
    2 * intermediateSize,
    intermediateSize,
    hiddenSize,
  ];
  const [residual, normed, update, qkv, attended, gateUp, activated, last] = widths.map(
    (width, buffer): BufferRef => ({ buffer, column: 0, width }),
  ) as [BufferRef, BufferRef, BufferRef, BufferRef, BufferRef, BufferRef, BufferRef, BufferRef];
  const queries = numHeads * headDim;
  const keys = numKvHeads * headDim;
  const part = (column: number, width: number): BufferRef => ({ ...qkv, column, width });
  const inverseFrequencies = Float32Array.from(
    { length: headDim / 2 },
    (_, pair) => 1e6 ** ((-2 * pair) / headDim),
  );
  const eps = 1e-6;
  const ops: Op[] = [{ op: "embedding", weight: embedding, out: residual }];
  for (let layer = 0; layer < numLayers; layer += 1) {
    const first = layer === 0 ? { in: residual } : { in: update, residual };
    ops.push(
      { op: "rms_norm", ...first, weight: norm, out: normed, eps },
      { op: "linear", in: normed, weight: await matrix(backend, queries + 2 * keys, hiddenSize), out: qkv },
      {
        op: "rope",
        on: part(0, queries + keys),
        headDim,
        rope: { inverseFrequencies, attentionFactor: 1, layout: "neox" },
      },
      {
        op: "attention",
        q: part(0, queries),
        k: part(queries, keys),
        v: part(queries + keys, keys),
        out: attended,
        layer,
        numHeads,
        numKvHeads,
        headDim,
        scale: 1 / Math.sqrt(headDim),
      },
      { op: "linear", in: attended, weight: await matrix(backend, hiddenSize, queries), out: update },
      { op: "rms_norm", in: update, residual, weight: norm, out: normed, eps },
      {
        op: "linear",
        in: normed,
        weight: await matrix(backend, 2 * intermediateSize, hiddenSize),
        out: gateUp,
      },
      { op: "gated_activation", in: gateUp, out: activated, activation: "silu" },
      {
        op: "linear",
        in: activated,
        weight: await matrix(backend, hiddenSize, intermediateSize),
        out: update,
      },
    );
  }
  ops.push(
    { op: "add", in: update, out: residual },
    { op: "gather", in: residual, out: last },
    { op: "rms_norm", in: last, weight: norm, out: normed, eps },
  );
  return backend.compile({
    buffers: widths,
    ops,
    hidden: normed,
    head: { weight: embedding },
    maxTokens: maxNumBatchedTokens,
  });
}

/** Nibbles from a multiplicative sequence, scales that keep activations finite. */
function matrix(backend: Backend, rows: number, cols: number): Promise<Matrix> {
  const data = new Uint8Array((rows * cols * blockBytes) / 32);
  const words = new Uint32Array(data.buffer, 0, data.length >> 2);
  let state = rows ^ (cols << 8);
  for (let index = 0; index < words.length; index += 1) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    words[index] = state;
  }
  // 2^-8 as f16, little-endian
  for (let block = 0; block < data.length; block += blockBytes) {
    data[block] = 0;
    data[block + 1] = 0x1c;
  }
  return backend.createMatrix([{ type: "q4_0", rows, cols, bytes: { data }, name: `${rows} x ${cols}` }]);
}
