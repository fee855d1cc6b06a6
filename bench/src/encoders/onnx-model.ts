import { bertShape, type BertWeights, toBytes, type Weight } from "./random-bert.js";
import { OctavoError } from "@octavo/protocol";

// ONNX's protobuf messages, as far as a BERT needs them (onnx.proto: ModelProto, GraphProto, NodeProto, AttributeProto, TensorProto).

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  while (rest > 127) {
    bytes.push((rest & 127) | 128);
    rest = Math.floor(rest / 128);
  }
  return Buffer.from([...bytes, rest]);
}
const number = (field: number, value: number): Buffer => Buffer.concat([varint(field * 8), varint(value)]);
const bytes = (field: number, value: Uint8Array): Buffer =>
  Buffer.concat([varint(field * 8 + 2), varint(value.length), value]);
const text = (field: number, value: string): Buffer => bytes(field, Buffer.from(value));

const elementTypes = { f32: 1, i8: 3, i32: 6, i64: 7 } as const;
type ElementType = keyof typeof elementTypes;

function tensor(name: string, type: ElementType, shape: readonly number[], data: ArrayBufferView): Buffer {
  return Buffer.concat([
    ...shape.map((size) => number(1, size)),
    number(2, elementTypes[type]),
    text(8, name),
    bytes(9, new Uint8Array(data.buffer, data.byteOffset, data.byteLength)),
  ]);
}

function attribute(name: string, value: number, kind: "int" | "float"): Buffer {
  if (kind === "int") return Buffer.concat([text(1, name), number(3, value), number(20, 2)]);
  const real = Buffer.alloc(5);
  real[0] = 2 * 8 + 5;
  real.writeFloatLE(value, 1);
  return Buffer.concat([text(1, name), real, number(20, 1)]);
}

function valueInfo(name: string, type: ElementType, dimensions: readonly string[]): Buffer {
  const shape = Buffer.concat(dimensions.map((size) => bytes(1, text(2, size))));
  return Buffer.concat([
    text(1, name),
    bytes(2, bytes(1, Buffer.concat([number(1, elementTypes[type]), bytes(2, shape)]))),
  ]);
}

/**
 * The model as ONNX Runtime runs it best: its own fused attention (as its optimizer for transformers makes it), and for int8 dynamic
 * quantisation of every linear. Inputs: ids and positions `[batch, tokens]`, the number of tokens of each text.
 */
export function onnxBert(weights: BertWeights, type: "f32" | "int8"): Buffer {
  const graph: Buffer[] = [];
  const initializers: Buffer[] = [];
  const weightOf = (name: string): Weight => {
    const found = weights.get(name);
    if (found === undefined) throw new OctavoError("internal_error", `there is no weight ${name}`);
    return found;
  };
  const add = (
    op: string,
    inputs: readonly string[],
    outputs: readonly string[],
    attributes: readonly Buffer[] = [],
    domain = "",
  ): void => {
    const parts = [
      ...inputs.map((name) => text(1, name)),
      ...outputs.map((name) => text(2, name)),
      text(4, op),
    ];
    graph.push(
      Buffer.concat([
        ...parts,
        ...attributes.map((one) => bytes(5, one)),
        ...(domain ? [text(7, domain)] : []),
      ]),
    );
  };
  const constant = (name: string, shape: readonly number[], values: Float32Array): string => {
    initializers.push(tensor(name, "f32", shape, values));
    return name;
  };
  const vector = (name: string): string =>
    constant(name, [weightOf(name).values.length], weightOf(name).values);
  /** `[cols, rows]`, as MatMul takes it, of matrices side by side. */
  const matrix = (name: string, ofRows: readonly Weight[]): readonly string[] => {
    const cols = ofRows[0]?.shape[1] ?? 0;
    const rows = ofRows.reduce((sum, { shape }) => sum + (shape[0] ?? 0), 0);
    const stacked = Float32Array.from(ofRows.flatMap(({ values }) => Array.from(values)));
    const transpose = <A extends Float32Array | Int8Array>(from: A, to: A): A => {
      for (let row = 0; row < rows; row++)
        for (let col = 0; col < cols; col++) to[col * rows + row] = from[row * cols + col] ?? 0;
      return to;
    };
    if (type === "f32")
      return [constant(name, [cols, rows], transpose(stacked, new Float32Array(stacked.length)))];
    const { codes, scales } = toBytes({ shape: [rows, cols], values: stacked });
    initializers.push(tensor(name, "i8", [cols, rows], transpose(codes, new Int8Array(codes.length))));
    initializers.push(tensor(`${name}_zero`, "i8", [rows], new Int8Array(rows)));
    return [name, constant(`${name}_scale`, [rows], scales), `${name}_zero`];
  };
  const linear = (name: string, input: string, output: string): void => {
    const factors = matrix(`${name}.weight`, [weightOf(`${name}.weight`)]);
    if (type === "int8") {
      add(
        "DynamicQuantizeMatMul",
        [input, ...factors, vector(`${name}.bias`)],
        [output],
        [],
        "com.microsoft",
      );
      return;
    }
    add("MatMul", [input, ...factors], [`${output}_product`]);
    add("Add", [`${output}_product`, vector(`${name}.bias`)], [output]);
  };
  const norm = (name: string, input: string, output: string): void => {
    const [axis, eps] = [attribute("axis", 2, "int"), attribute("epsilon", 1e-12, "float")];
    add(
      "LayerNormalization",
      [input, vector(`${name}.weight`), vector(`${name}.bias`)],
      [output],
      [axis, eps],
    );
  };
  const { hidden, vocab, positions, layers, heads } = bertShape;
  const table = weightOf("embeddings.position_embeddings.weight").values;
  const kind = weightOf("embeddings.token_type_embeddings.weight").values;
  const places = table.map((value, index) => value + (kind[index % hidden] ?? 0));
  add(
    "Gather",
    [constant("words", [vocab, hidden], weightOf("embeddings.word_embeddings.weight").values), "ids"],
    ["word"],
  );
  add("Gather", [constant("places", [positions, hidden], places), "positions"], ["place"]);
  add("Add", ["word", "place"], ["embedded"]);
  norm("embeddings.LayerNorm", "embedded", "x0");
  for (let layer = 0; layer < layers; layer++) {
    const name = `encoder.layer.${layer}`;
    const [x, y] = [`x${layer}`, `y${layer}`];
    const parts = ["query", "key", "value"].map((part) => `${name}.attention.self.${part}`);
    const qkv = matrix(
      `qkv${layer}`,
      parts.map((part) => weightOf(`${part}.weight`)),
    );
    const biases = Float32Array.from(parts.flatMap((part) => Array.from(weightOf(`${part}.bias`).values)));
    const bias = constant(`qkv_bias${layer}`, [biases.length], biases);
    const numHeads = [attribute("num_heads", heads, "int")];
    if (type === "f32")
      add("Attention", [x, ...qkv, bias, "lengths"], [`attended${layer}`], numHeads, "com.microsoft");
    else {
      add("DynamicQuantizeLinear", [x], [`q${x}`, `scale_${x}`, `zero_${x}`]);
      const inputs = [
        `q${x}`,
        qkv[0] ?? "",
        bias,
        `scale_${x}`,
        qkv[1] ?? "",
        "lengths",
        `zero_${x}`,
        qkv[2] ?? "",
      ];
      add("QAttention", inputs, [`attended${layer}`], numHeads, "com.microsoft");
    }
    linear(`${name}.attention.output.dense`, `attended${layer}`, `out${layer}`);
    add("Add", [`out${layer}`, x], [`sum${layer}`]);
    norm(`${name}.attention.output.LayerNorm`, `sum${layer}`, y);
    linear(`${name}.intermediate.dense`, y, `inner${layer}`);
    add("Gelu", [`inner${layer}`], [`active${layer}`], [], "com.microsoft");
    linear(`${name}.output.dense`, `active${layer}`, `update${layer}`);
    add("Add", [`update${layer}`, y], [`total${layer}`]);
    norm(`${name}.output.LayerNorm`, `total${layer}`, `x${layer + 1}`);
  }
  const inputs = [
    valueInfo("ids", "i64", ["batch", "tokens"]),
    valueInfo("positions", "i64", ["batch", "tokens"]),
  ];
  const lengths = valueInfo("lengths", "i32", ["batch"]);
  const body = [
    ...graph.map((node) => bytes(1, node)),
    text(2, "bert"),
    ...initializers.map((one) => bytes(5, one)),
    ...[...inputs, lengths].map((one) => bytes(11, one)),
    bytes(12, valueInfo(`x${layers}`, "f32", ["batch", "tokens", "hidden"])),
  ];
  const opsets = [number(2, 17), Buffer.concat([text(1, "com.microsoft"), number(2, 1)])];
  return Buffer.concat([number(1, 8), ...opsets.map((one) => bytes(8, one)), bytes(7, Buffer.concat(body))]);
}
