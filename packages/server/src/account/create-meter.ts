import type { LanguageModel } from "@octavo/engine";
import type { ServerConfig } from "../config.js";
import { BoundedLabels } from "../metrics/bounded-labels.js";
import type { Registry } from "../metrics/registry.js";
import { MeterMetrics } from "./meter-metrics.js";
import { Meter } from "./meter.js";
import type { MeteringLog } from "./metering-log.js";

const maxFeaturesPerTenant = 32;

export function createMeter(
  model: LanguageModel,
  config: ServerConfig,
  registry: Registry,
  log: MeteringLog | undefined,
): Meter {
  const labels = new BoundedLabels({
    maxTenants: config.maxMeteredTenants,
    maxFeatures: maxFeaturesPerTenant,
  });
  const [first = model.name, ...others] = config.servedModelNames;
  const meter = new Meter({
    engine: model.engine,
    metrics: new MeterMetrics(registry, labels),
    modelNames: [first, ...others],
    dollarsPerHour: config.dollarsPerHour,
    log,
  });
  registry.onCollect(() => meter.collect());
  return meter;
}
