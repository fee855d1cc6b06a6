import type { EngineObserver, LanguageModel } from "@octavo/engine";
import { OctavoError } from "@octavo/protocol";
import type { Logger } from "pino";
import type { ServerConfig } from "../config.js";
import { servedNames } from "../served-names.js";
import type { Registry } from "@octavo/tracing/prometheus";
import { AlertCenter, alertText } from "./alert-center.js";
import { AlertWebhook } from "./alert-webhook.js";
import { DetectorMetrics } from "./detector-metrics.js";
import { DetectorSuite } from "./detector-suite.js";
import { resolveThresholds } from "./thresholds.js";

export interface RunningDetectors {
  readonly observer: EngineObserver;
  close(deadlineMs: number): Promise<void>;
}

const evaluateMs = 1000;

type DetectorConfig = Pick<
  ServerConfig,
  "detectorThresholds" | "alertWebhook" | "alertWebhookHeaders" | "enableDetectors"
>;

/** Throws `invalid_option` naming the option. */
export function checkDetectorConfig(config: DetectorConfig): void {
  resolveThresholds(config.detectorThresholds);
  if (config.alertWebhook === "") return;
  if (!config.enableDetectors) {
    throw new OctavoError("invalid_option", "alertWebhook: there are no alerts while detectors are off", {
      param: "alertWebhook",
    });
  }
  void new AlertWebhook({
    url: config.alertWebhook,
    headers: config.alertWebhookHeaders,
    modelName: "",
  }).close(0);
}

/** Monitors an engine and reports alerts to metrics, the log and the webhook. Undefined if detectors are off. */
export function createDetectors(
  model: LanguageModel,
  config: ServerConfig,
  registry: Registry,
  log: Logger,
): RunningDetectors | undefined {
  const metrics = new DetectorMetrics(registry);
  if (!config.enableDetectors) return undefined;
  const { engine } = model;
  const suite = new DetectorSuite({
    thresholds: resolveThresholds(config.detectorThresholds),
    hasRules: config.enableRuleAlerts,
    engine,
    onSlowGap: (reason, excessMs) => metrics.slowGap(reason, excessMs),
  });
  const webhook =
    config.alertWebhook === ""
      ? undefined
      : new AlertWebhook({
          url: config.alertWebhook,
          headers: config.alertWebhookHeaders,
          modelName: servedNames(model, config)[0],
          onProblem: (message) => log.warn(message),
        });
  const center = new AlertCenter({
    evidence: engine.evidence,
    onAlert: (alert) => {
      metrics.alerted(alert);
      webhook?.add(alert);
      if (alert.status === "firing") log.warn({ alert }, alertText(alert));
      else log.info({ alert }, alertText(alert));
    },
  });
  registry.onCollect(() => metrics.show(suite, center.active, webhook));
  const timer = setInterval(() => center.update(suite.evaluate()), evaluateMs).unref();
  return {
    observer: suite.observer,
    async close(deadlineMs) {
      clearInterval(timer);
      await webhook?.close(deadlineMs);
    },
  };
}
