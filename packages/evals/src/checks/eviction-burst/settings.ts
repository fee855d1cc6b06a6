import { z } from "zod";
import { evictionFields } from "../eviction/settings.js";
import { camelKeys, share } from "../support/settings.js";

export const evictionBurstSettings = z
  .strictObject({
    ...evictionFields,
    /** Conditions: cases on a quiet server, the same once more, the same within the burst, and the burst's own requests. */
    quiet: z.string().default("quiet"),
    quiet_again: z.string().default("quiet-again"),
    burst: z.string().default("burst"),
    filler: z.string().default("filler"),
    /** Requests of the burst that may lose blocks that they still need. */
    max_disturbed_share: share.default(0.1),
    /** Requests of the burst that may fail. */
    max_failed_share: share.default(0.05),
  })
  .transform(camelKeys);

export type EvictionBurstSettings = z.output<typeof evictionBurstSettings>;
