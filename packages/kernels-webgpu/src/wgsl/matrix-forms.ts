/** How the values of a matrix are coded. Words hold two halfs, four bytes or eight nibbles, the first lowest. */
export type CodeType = "f32" | "f16" | "bf16" | "int8" | "int4";

/**
 * How codes become values, w = scale * code + offset. `halfs`: a pair of f16 a group, scale and offset. `floats`: a pair of f32 a group.
 * `levels`: a pair of f16 a group, times a pair of f16 every 256 columns.
 */
export type ScaleType = "none" | "halfs" | "floats" | "levels";

/** The layout of a matrix on a GPU. */
export interface MatrixForm {
  readonly codes: CodeType;
  readonly scales: ScaleType;
  /** Columns that share a scale; a multiple of 16. */
  readonly group: number;
}

/** Rows that lie side by side, so that neighbouring lanes read neighbouring words. */
export const tileRows = 32;
/** Columns are padded with zeros to a multiple of this. */
export const columnUnit = 32;
/** Columns of a second-level scale. */
export const superColumns = 256;
/** Parts that a row's products are summed in, each in order; then the parts in order. */
export const numSlices = 8;

/** Values in 16 bytes, which are what a lane reads at a time. */
export function chunkColumns(codes: CodeType): number {
  return { f32: 4, f16: 8, bf16: 8, int8: 16, int4: 32 }[codes];
}

export function formKey({ codes, scales, group }: MatrixForm): string {
  return scales === "none" ? codes : `${codes} ${scales} ${group}`;
}

/**
 * `chunk(tile, lane, index)`: the values of the chunk's columns, four a vector. Codes lie as `[tile][chunk][lane]` of 16 bytes, scales as
 * `[group][padded row]`, and behind them those of the second level.
 */
export function chunkFunction(form: MatrixForm): string {
  const { codes, scales, group } = form;
  const columns = chunkColumns(codes);
  const vectors = columns / 4;
  const lines = [`fn chunk(tile: u32, lane: u32, index: u32) -> array<vec4<f32>, ${vectors}> {`];
  lines.push(`  let w = codes[(tile * p.chunks + index) * ${tileRows}u + lane];`);
  lines.push(`  var out: array<vec4<f32>, ${vectors}>;`);
  for (let vector = 0; vector < vectors; vector++) {
    const code = codeVector(codes, vector);
    if (scales === "none") {
      lines.push(`  out[${vector}] = ${code};`);
      continue;
    }
    if ((vector * 4) % group === 0) {
      const name = `s${(vector * 4) / group}`;
      lines.push(
        `  let ${name} = scale_of((index * ${columns}u + ${vector * 4}u) / ${group}u, tile * ${tileRows}u + lane);`,
      );
    }
    const name = `s${Math.floor((vector * 4) / group)}`;
    lines.push(`  out[${vector}] = fma(vec4<f32>(${name}.x), ${code}, vec4<f32>(${name}.y));`);
  }
  lines.push("  return out;", "}");
  return [scaleFunction(form), lines.join("\n")].join("\n");
}

function codeVector(codes: CodeType, vector: number): string {
  const word = (index: number): string => `w.${"xyzw"[index]}`;
  switch (codes) {
    case "f32":
      return "bitcast<vec4<f32>>(w)";
    case "f16":
      return `vec4<f32>(unpack2x16float(${word(2 * vector)}), unpack2x16float(${word(2 * vector + 1)}))`;
    case "bf16": {
      const pair = (w: string): string => `bitcast<f32>(${w} << 16u), bitcast<f32>(${w} & 0xffff0000u)`;
      return `vec4<f32>(${pair(word(2 * vector))}, ${pair(word(2 * vector + 1))})`;
    }
    case "int8": {
      const signed = `bitcast<i32>(${word(vector)})`;
      const parts = [0, 8, 16, 24].map((shift) => `extractBits(${signed}, ${shift}u, 8u)`);
      return `vec4<f32>(vec4<i32>(${parts.join(", ")}))`;
    }
    case "int4": {
      const w = word(vector >> 1);
      const shifts = [0, 4, 8, 12].map((shift) => `${shift + (vector & 1) * 16}u`);
      return `vec4<f32>((vec4<u32>(${w}) >> vec4<u32>(${shifts.join(", ")})) & vec4<u32>(15u))`;
    }
  }
}

function scaleFunction({ scales, group }: MatrixForm): string {
  const head = "fn scale_of(group: u32, row: u32) -> vec2<f32> {";
  switch (scales) {
    case "none":
      return "";
    case "halfs":
      return `${head} return unpack2x16float(scales[group * p.paddedRows + row]); }`;
    case "floats":
      return `${head} let at = 2u * (group * p.paddedRows + row); return vec2<f32>(bitcast<f32>(scales[at]), bitcast<f32>(scales[at + 1u])); }`;
    case "levels":
      return `${head}
  let low = unpack2x16float(scales[group * p.paddedRows + row]);
  let high = unpack2x16float(scales[(p.groups + group / ${superColumns / group}u) * p.paddedRows + row]);
  return low * high;
}`;
  }
}
