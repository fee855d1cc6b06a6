import { asArray, asObject } from "@octavo/protocol";
import { type CallFinding, isVerified, type NewFinding, type Quote, withId } from "./finding.js";

/** Causes of the engine's evidence behind the reasons that alerts give (docs/guide/alerts.md). */
const causes: Readonly<Record<string, string>> = {
  "prefill-burst": "prefill_burst",
  "kv-eviction": "preemption",
  "kv-pressure": "preemption",
  "scheduler-starve": "queue",
  "batch-growth": "batch_growth",
  "slow-compute": "slow_compute",
  "host-stall": "host",
};

/**
 * Findings in alerts that fired: bodies that Octavo's or another Alertmanager posted (`alerts`), and lines of a server's log
 * (`alert`). An alert that names its reason has the cause of the calls that it is about, so that what answers theirs answers it. What
 * is no alert is left out; `unverified`: as in `findingsOfSpan`.
 */
export function findingsOfAlert(value: unknown): {
  readonly findings: readonly CallFinding[];
  readonly unverified: number;
} {
  const body = asObject(value);
  const listed = asArray(body?.["alerts"]).flatMap((alert) => posted(asObject(alert)) ?? []);
  const found = listed.length > 0 ? listed : [logged(body) ?? []].flat();
  const verified = found.filter(({ finding, texts }) => isVerified(finding, texts));
  return {
    findings: verified.map(({ finding }) => withId(finding)),
    unverified: found.length - verified.length,
  };
}

interface Found {
  readonly finding: NewFinding;
  readonly texts: ReadonlyMap<string, string>;
}

type Fields = Readonly<Record<string, unknown>>;

function posted(alert: Fields | undefined): Found | undefined {
  if (alert?.["status"] !== "firing") return undefined;
  const labels = asObject(alert["labels"]) ?? {};
  const annotations = asObject(alert["annotations"]) ?? {};
  const name = labels["detector"] ?? labels["alertname"];
  const epochMs = Date.parse(String(alert["startsAt"]));
  if (typeof name !== "string" || Number.isNaN(epochMs)) return undefined;
  const texts = textsOf({ ...labels, ...annotations });
  return foundIn(texts, { name, epochMs, example: texts.get("example_request_id"), quoted: ["summary"] });
}

function logged(line: Fields | undefined): Found | undefined {
  const alert = asObject(line?.["alert"]);
  if (alert?.["status"] !== "firing" || typeof alert["detector"] !== "string") return undefined;
  const example = asObject(alert["example"])?.["requestId"];
  return foundIn(textsOf(alert), {
    name: alert["detector"],
    epochMs: Number(alert["startsAtMs"]),
    example: typeof example === "string" ? example : undefined,
    quoted: ["value"],
  });
}

function foundIn(
  texts: ReadonlyMap<string, string>,
  {
    name,
    epochMs,
    example,
    quoted,
  }: {
    readonly name: string;
    readonly epochMs: number;
    readonly example: string | undefined;
    readonly quoted: readonly string[];
  },
): Found {
  const reason = texts.get("reason");
  const quotes = ["detector", "alertname", "reason", ...quoted].flatMap((field): readonly Quote[] => {
    const text = texts.get(field);
    return text === undefined ? [] : [{ field, text }];
  });
  return {
    texts,
    finding: {
      kind: "serving",
      cause: causes[reason ?? ""] ?? reason ?? name,
      description: `the alert ${name} fired${reason === undefined ? "" : `, because of ${reason}`}`,
      quotes,
      // requests of the same moment are other traces: an alert without an example is evidence of its own
      traceId: example ?? `alert ${name} ${new Date(epochMs).toISOString()}`,
      epochMs,
      tenant: texts.get("tenant"),
      replica: texts.get("replica") ?? texts.get("instance"),
      model: texts.get("model_name"),
      lostMs: undefined,
    },
  };
}

function textsOf(fields: Fields): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(fields).flatMap(([name, value]) =>
      typeof value === "string" || typeof value === "number" ? [[name, String(value)] as const] : [],
    ),
  );
}
