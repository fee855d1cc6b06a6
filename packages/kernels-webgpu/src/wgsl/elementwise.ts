import type { Activation } from "@octavo/kernels";
import { gatedFunction } from "./activations.js";
import { type ParamType, type Shader, shaderCode } from "./shader.js";

/** A place in the arena: where row 0 begins and how far rows are apart, in floats. */
const place = <Name extends string>(name: Name) =>
  ({ [name]: "u32", [`${name}Stride`]: "u32" }) as Record<Name | `${Name}Stride`, ParamType>;

const common = { rowsAt: "u32", width: "u32" } as const;

/** One thread a value: `i` is its column, `row` its row, and `x` and `y` are where they lie at the places `in` and `out`. */
function mapShader<Extra extends string>(
  key: string,
  body: string,
  extra: Readonly<Record<Extra, ParamType>>,
  functions = "",
  /** A vector that `body` reads by this name. */
  vector?: string,
): Shader {
  const params = { ...common, ...place("src"), ...place("to"), ...extra };
  return {
    key: `map ${key}`,
    params,
    bindings: vector === undefined ? [] : ["read"],
    code: () =>
      shaderCode(
        params,
        vector === undefined ? [] : [`var<storage, read> ${vector}: array<f32>;`],
        `${functions}
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let i = id.x;
  let row = id.y;
  if (i >= p.width || row >= step[p.rowsAt]) { return; }
  let x = p.src + row * p.srcStride;
  let y = p.to + row * p.toStride;
  ${body}
}`,
      ),
  };
}

export const addShader = mapShader("add", "st(y + i, ld(y + i) + ld(x + i));", {});
export const scaleShader = mapShader("scale", "st(y + i, ld(y + i) * p.factor);", { factor: "f32" });
/** `scaleShader` with a further factor from memory. */
export const scaleByShader = mapShader(
  "scale by",
  "st(y + i, ld(y + i) * (p.factor * by[0]));",
  { factor: "f32" },
  "",
  "by",
);
export const clampShader = mapShader("clamp", "st(y + i, clamp(ld(y + i), p.least, p.limit));", {
  least: "f32",
  limit: "f32",
});
export const copyShader = mapShader("copy", "st(y + i, ld(x + i));", {});

/** Rows named by the step's outputs, or the mean or largest of rows that end with them. */
export const gatherShader = mapShader(
  "gather",
  `let token = step_at(at_outputTokens, row);
  let count = step_at(at_poolTokens, row);
  var pooled = ld(p.src + (token + 1u - count) * p.srcStride + i);
  for (var n = token + 2u - count; n <= token; n++) {
    let value = ld(p.src + n * p.srcStride + i);
    if (step_at(at_poolsMost, row) != 0u) { pooled = max(pooled, value); } else { pooled = pooled + value; }
  }
  if (count > 1u && step_at(at_poolsMost, row) == 0u) { pooled = pooled / f32(count); }
  st(y + i, pooled);`,
  {},
);

export const splitShader = mapShader(
  "split",
  `let run = i / p.run;
  let to = select(y, p.second + row * p.secondStride, run % 2u == 1u);
  st(to + (run / 2u) * p.run + i % p.run, ld(x + i));`,
  { run: "u32", ...place("second") },
);

/** The last `run` columns of each head become its first. */
export const passShader = mapShader(
  "pass",
  "let head = i / p.run; st(y + head * p.toRun + i % p.run, ld(x + (head + 1u) * p.fromRun - p.run + i % p.run));",
  { run: "u32", fromRun: "u32", toRun: "u32" },
);

export const sigmoidGateShader = mapShader(
  "sigmoid_gate",
  "st(y + i, gated(ld(x), ld(y + i)));",
  {},
  gatedFunction("sigmoid"),
);

/** to = activation(from) * to */
export function gateShader(activation: Activation): Shader {
  return mapShader(
    `gate ${activation}`,
    "st(y + i, gated(ld(x + i), ld(y + i)));",
    {},
    gatedFunction(activation),
  );
}

/** to = activation(first half of from) * second half */
export function gatedActivationShader(activation: Activation): Shader {
  return mapShader(
    `gated ${activation}`,
    "st(y + i, gated(ld(x + i), ld(x + p.width + i)));",
    {},
    gatedFunction(activation),
  );
}

export function activationShader(activation: Activation): Shader {
  return mapShader(
    `activation ${activation}`,
    "st(y + i, gated(ld(y + i), 1.0));",
    {},
    gatedFunction(activation),
  );
}
