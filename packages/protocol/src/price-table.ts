import { z } from "zod";

/** Dollars per million tokens. */
const price = z.number().nonnegative();

const apiPrice = z.object({
  name: z.string().min(1).max(200),
  input: price,
  /** Price of input that the provider had cached; `input` by default. */
  cachedInput: price.optional(),
  output: price,
  /** Where the figure can be checked. */
  source: z.string().optional(),
});

/** What managed APIs charge, as a file that users replace with figures of their own. */
export const priceTable = z.object({
  /** The day of the figures. */
  asOf: z.iso.date(),
  currency: z.string().optional(),
  note: z.string().optional(),
  prices: z.array(apiPrice).max(10_000),
});

export type ApiPrice = z.output<typeof apiPrice>;
export type PriceTable = z.output<typeof priceTable>;
