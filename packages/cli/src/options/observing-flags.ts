import { conventionNames } from "@octavo/tracing";
import { type Command, Option } from "commander";
import { longestSeconds, parseHeader, parseNumber, parseThreshold } from "./parse.js";

/** Flags of `octavo serve` for who looks at it: traces, alerts, costs. */
export function withObservingFlags(command: Command): Command {
  return command
    .optionsGroup("Traces:")
    .option(
      "--otlp-endpoint <url>",
      "send a span per request to this OpenTelemetry collector (OTLP over HTTP)",
    )
    .option("--otlp-traces-endpoint <url>", "the same, by vLLM's name")
    .option(
      "--otlp-metrics-endpoint <url>",
      "send OpenTelemetry's metrics of a generative AI server to this collector (OTLP over HTTP)",
    )
    .option(
      "--otlp-metrics-interval <seconds>",
      "time between two of them (default: 60)",
      parseNumber(1, longestSeconds),
    )
    .option(
      "--trace-store <folder>",
      "keep a span per request in this folder, for octavo traces; auto: where that looks",
    )
    .option("--otlp-headers <name=value...>", "headers of what is sent there, such as a key", parseHeader)
    .addOption(
      new Option(
        "--trace-conventions <name...>",
        "vocabularies of the spans (default: opentelemetry)",
      ).choices(conventionNames),
    )
    .option(
      "--trace-attributes <name=value...>",
      "of every span, e.g. ray.serve.deployment_name=llama cluster.replica_count=4",
      parseHeader,
    )
    .option("--trace-sample-ratio <share>", "share of traces begun here that are kept", parseNumber(0, 1))
    .optionsGroup("Alerts:")
    .option("--no-detectors", "do not watch latencies, cache and tenants")
    .option("--enable-rule-alerts", "alert by plain ratios too, beside the sequential tests")
    .option(
      "--detector-thresholds <name=value...>",
      "when to alert, e.g. decodeLatencyFactor=2 kvUsage=0.85",
      parseThreshold,
    )
    .option("--alert-webhook <url>", "post alerts there, in the form of Alertmanager's webhook")
    .option(
      "--alert-webhook-headers <name=value...>",
      "headers of what is posted, such as a key",
      parseHeader,
    )
    .optionsGroup("Costs:")
    .option("--rate <dollars>", "what this machine costs per hour", parseNumber(0))
    .option(
      "--metering-log <file>",
      "append what each request took to this file, one JSON object a line, for octavo costs",
    );
}
