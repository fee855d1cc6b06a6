import { z } from "zod";
import { requestLimits, withoutEffect } from "./fields.js";

const adapterName = z.string().min(1).max(requestLimits.idLength);

/** vLLM's request of `/v1/load_lora_adapter`. */
export const loadLoraRequest = z.object({
  lora_name: adapterName,
  /** A folder on the server's machine, or a repository of the hub. */
  lora_path: z.string().min(1).max(4096),
  load_inplace: z.boolean().nullish(),
});

export const unloadLoraRequest = z.object({
  lora_name: adapterName,
  /** vLLM's number of an adapter; the name says which one it is. */
  lora_int_id: withoutEffect(),
});

export type LoadLoraRequest = z.output<typeof loadLoraRequest>;
export type UnloadLoraRequest = z.output<typeof unloadLoraRequest>;
