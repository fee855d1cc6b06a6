import { z } from "zod";

const seconds = z.number().nonnegative();
const tokens = z.int().nonnegative();

/**
 * What one request took, as a line of a metering log. The names are those that gateways and guides of self-hosted
 * inference tag requests with, so the first six alone make a valid record, whatever wrote it.
 */
export const meteringRecord = z.object({
  kind: z.literal("request").optional(),
  /** What the caller uses the model for: a feature of its product. */
  feature: z.string().nullish(),
  "inference.backend": z.string().nullish(),
  model: z.string(),
  /** Seconds of the whole machine: every step's computing time is shared out to the requests in it. */
  gpu_seconds: seconds,
  input_tokens: tokens,
  output_tokens: tokens,
  /** Input tokens found in the prefix cache. */
  cached_input_tokens: tokens.optional(),
  tenant: z.string().nullish(),
  /** ISO 8601, when the request ended. */
  time: z.iso.datetime({ offset: true }).optional(),
  outcome: z.enum(["ok", "error", "aborted"]).optional(),
  /** Its `x-octavo-request-id`. */
  request_id: z.string().optional(),
  trace_id: z.string().nullish(),
  /** At the machine's hourly rate, where one was configured. */
  dollars: z.number().nonnegative().optional(),
});

export type MeteringRecord = z.output<typeof meteringRecord>;

/**
 * What a machine's time went to in a while: the three parts add up to `seconds`. The seconds of requests add up to
 * `computing_seconds` over all the log, in a while of it as far as they began and ended in it.
 */
export const machineRecord = z.object({
  kind: z.literal("machine"),
  /** ISO 8601, the end of the while. */
  time: z.iso.datetime({ offset: true }),
  /** Tells servers that write to one log apart. */
  server: z.string(),
  seconds,
  computing_seconds: seconds,
  /** Requests were there, and nothing was computed: planning, sampling's aftermath, the event loop. */
  overhead_seconds: seconds,
  idle_seconds: seconds,
  dollars_per_hour: z.number().nonnegative().optional(),
});

export type MachineRecord = z.output<typeof machineRecord>;
