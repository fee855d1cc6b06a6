import { z } from "zod";

const seconds = z.number().min(0);
const positive = z.number().gt(0);
const count = z.int().min(0).max(10_000);

/** Ray Serve's `autoscaling_config`: the same names, defaults and checks (ray 2.60, `serve/config.py`). Times in seconds. */
export const autoscalingSchema = z
  .strictObject({
    min_replicas: count.default(1),
    /** Without it `min_replicas`. */
    initial_replicas: count.optional(),
    max_replicas: count.min(1).default(1),
    target_ongoing_requests: positive.default(2),
    /** How often requests are reported to the autoscaler. */
    metrics_interval_s: positive.default(10),
    look_back_period_s: positive.default(30),
    upscaling_factor: positive.default(1),
    downscaling_factor: positive.default(1),
    upscale_delay_s: seconds.default(30),
    downscale_delay_s: seconds.default(600),
    /** From 1 to 0; without it `downscale_delay_s`. */
    downscale_to_zero_delay_s: seconds.optional(),
    aggregation_function: z.enum(["mean", "max", "min"]).default("mean"),
  })
  .superRefine((config, context) => {
    const { min_replicas: least, max_replicas: most, initial_replicas: initial = least } = config;
    const refuse = (field: string, message: string): void =>
      context.addIssue({ code: "custom", path: [field], message });
    if (most < least) refuse("max_replicas", `${most} is less than min_replicas, ${least}`);
    else if (initial < least || initial > most)
      refuse(
        "initial_replicas",
        `${initial} is not between min_replicas, ${least}, and max_replicas, ${most}`,
      );
  });

export type AutoscalingConfig = z.output<typeof autoscalingSchema>;
