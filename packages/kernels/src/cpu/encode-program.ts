import type { BufferRef, ProgramSpec } from "../backend.js";
import { spanOf } from "../checks/span.js";
import { foreign, Handle } from "./handles.js";

/** A checked program as native/binding/program_binding.cpp reads it: handles of `owner` unwrapped, buffer references filled in. */
export function encodeProgram(spec: ProgramSpec, owner: object): object {
  const encode = (value: unknown): unknown => {
    if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return value;
    if (value instanceof Handle) return value.objectFor(owner);
    if (Symbol.dispose in value) throw foreign("handle");
    if (Array.isArray(value)) return value.map(encode);
    if ("buffer" in value) return spanOf(value as BufferRef, spec.buffers);
    return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, encode(part)]));
  };
  return encode(spec) as object;
}
