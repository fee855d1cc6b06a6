/** A field of a kernel's parameters, which a dispatch fixes when a program is bound. */
export type ParamType = "u32" | "f32";

/** A compute shader and how its buffers are bound, after the parameters, the step and the arena. */
export interface Shader<Params extends string = string> {
  /** Equal keys are equal shaders. */
  readonly key: string;
  readonly params: Readonly<Record<Params, ParamType>>;
  readonly bindings: readonly ("read" | "write")[];
  /** Made only where the device has not compiled the key. */
  readonly code: () => string;
}

/** What a step's buffer begins with: counts, and where its arrays start. */
export const stepHeader = [
  "numTokens",
  "numOutputs",
  "numSequences",
  "numTiles",
  "numSegments",
  "tokenIds",
  "positions",
  "slots",
  "outputTokens",
  "tokenTypes",
  "poolTokens",
  "poolsMost",
  "queryStarts",
  "contextLengths",
  "blockTables",
  "blockTableStarts",
  "tiles",
  "rowAdapters",
  "stateSlots",
  "stateSources",
  "stateStarts",
  "stateEnds",
  "snapshotStarts",
  "snapshotPositions",
  "snapshotSlots",
  "firstRope",
] as const;

export type StepField = (typeof stepHeader)[number];

/** Words of the header; rope tables beyond the first follow it. */
export const mostRopes = 8;
export const headerWords = 32;

export function stepIndex(field: StepField, offset = 0): number {
  return stepHeader.indexOf(field) + offset;
}

/** Declarations of a shader whose parameters are `params` and whose entry point is `main`. */
export function shaderCode(
  params: Readonly<Record<string, ParamType>>,
  declarations: readonly string[],
  body: string,
  enables: readonly string[] = [],
): string {
  const fields = Object.entries(params).map(([name, type]) => `  ${name}: ${type},`);
  const constants = stepHeader.map((field, index) => `const at_${field} = ${index}u;`);
  return [
    ...enables,
    ...constants,
    `struct Params {\n${fields.join("\n")}\n}`,
    "@group(0) @binding(0) var<uniform> p: Params;",
    "@group(0) @binding(1) var<storage, read> step: array<u32>;",
    "@group(0) @binding(2) var<storage, read_write> arena: array<vec4<f32>>;",
    ...declarations.map((declaration, index) => `@group(0) @binding(${index + 3}) ${declaration}`),
    "fn ld(at: u32) -> f32 { return arena[at >> 2u][at & 3u]; }",
    "fn st(at: u32, value: f32) { arena[at >> 2u][at & 3u] = value; }",
    "fn step_at(field: u32, index: u32) -> u32 { return step[step[field] + index]; }",
    body,
  ].join("\n");
}

/** Values of `params` in their order, as the bytes of a uniform buffer. */
export function encodeParams(
  params: Readonly<Record<string, ParamType>>,
  values: Readonly<Record<string, number>>,
): Uint32Array {
  const names = Object.keys(params);
  const words = new Uint32Array(names.length);
  const floats = new Float32Array(words.buffer);
  for (const [index, name] of names.entries()) {
    const value = values[name] ?? 0;
    if (params[name] === "f32") floats[index] = value;
    else words[index] = value;
  }
  return words;
}
