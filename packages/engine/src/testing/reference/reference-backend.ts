import type {
  Adapter,
  AdapterSite,
  Backend,
  KvCache,
  KvCacheSpec,
  MappedFile,
  Matrix,
  MatrixSource,
  Program,
  ProgramSpec,
  StepPlan,
  StepResult,
  TensorBytes,
  Vector,
  VectorSource,
} from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import { dequantize, dequantizeGroups, isGrouped } from "@octavo/artifacts/testing/dequantize";
import {
  ReferenceAdapter,
  ReferenceFile,
  ReferenceKvCache,
  ReferenceMatrix,
  ReferenceProgram,
  ReferenceVector,
} from "./reference-handles.js";
import { runReferenceStep } from "./reference-step.js";
import type { StoredType } from "@octavo/artifacts/testing/quantize";

/**
 * A backend in plain TypeScript for reference numbers: dequantised weights, sums in double precision, greedy rows, no speed. It
 * shows whether a model's program is right without the native kernels, and what those should have computed.
 */
export class ReferenceBackend implements Backend {
  readonly info = { name: "reference", instructionSet: "none", features: [], numThreads: 1 };

  mapFile(path: string): MappedFile {
    return new ReferenceFile(path);
  }

  createMatrix(sources: readonly MatrixSource[]): Promise<Matrix> {
    const values = concatenate(sources.map(readMatrix));
    if (!values.every(Number.isFinite)) {
      const error = new OctavoError(
        "artifact_invalid",
        `One of ${sources.map((source) => source.name).join(", ")} holds NaN or infinity.`,
      );
      return Promise.reject(error);
    }
    return Promise.resolve(new ReferenceMatrix(sources[0]?.cols ?? 1, values));
  }

  createVector(sources: readonly VectorSource[]): Vector {
    return new ReferenceVector(concatenate(sources.map((source) => readValues(source.type, source.bytes))));
  }

  createKvCache(spec: KvCacheSpec): KvCache {
    return new ReferenceKvCache(spec);
  }

  createSamplerState(): never {
    throw new OctavoError("not_implemented", "The reference backend only decodes greedily.");
  }

  compile(spec: ProgramSpec): Program {
    return new ReferenceProgram(spec);
  }

  createAdapter(_program: Program, sites: readonly AdapterSite[]): Adapter {
    return new ReferenceAdapter(sites);
  }

  execute(program: Program, cache: KvCache, plan: StepPlan): Promise<StepResult> {
    if (!(program instanceof ReferenceProgram) || !(cache instanceof ReferenceKvCache)) {
      throw new OctavoError("internal_error", "The program or the cache belongs to another backend.");
    }
    return Promise.resolve({ rows: runReferenceStep(program.spec, cache, plan), computeMs: 0 });
  }

  [Symbol.dispose](): void {}
}

function readMatrix(source: MatrixSource): Float32Array {
  const { type, bytes } = source;
  if (!isGrouped(type)) return readValues(type, bytes);
  return dequantizeGroups({ ...source, type }, bytesOf(bytes), {
    scales: floatsOf(source.scales),
    zeros: source.zeros && floatsOf(source.zeros),
  });
}

function readValues(type: StoredType, bytes: TensorBytes): Float32Array {
  return dequantize(type, bytesOf(bytes));
}

function floatsOf(bytes: TensorBytes | undefined): Float32Array {
  return bytes === undefined ? new Float32Array() : dequantize("f32", bytesOf(bytes));
}

function bytesOf(bytes: TensorBytes): Uint8Array {
  if ("data" in bytes) return bytes.data;
  if (!(bytes.file instanceof ReferenceFile))
    throw new OctavoError("internal_error", "The file belongs to another backend.");
  return bytes.file.data.subarray(bytes.offset, bytes.offset + bytes.byteLength);
}

function concatenate(parts: readonly Float32Array[]): Float32Array {
  const whole = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.length;
  }
  return whole;
}
