import { HttpPoster } from "@octavo/tracing";
import { type Alert, alertText } from "./alert-center.js";

export interface AlertWebhookOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly modelName: string;
  readonly onProblem?: (message: string) => void;
  /** Most alerts waiting; more are dropped and counted. Default 100. */
  readonly maxWaiting?: number;
  /** The first wait before a retry, doubled each time. Default 1000. */
  readonly retryMs?: number;
}

const tries = 5;
const timeoutMs = 5000;

/**
 * Posts alerts in the format of Alertmanager's webhook, version 4, one at a time and in order. A receiver that is down or slow only
 * loses alerts, which are counted.
 */
export class AlertWebhook {
  readonly #options: AlertWebhookOptions;
  readonly #poster: HttpPoster;
  readonly #waiting: Alert[] = [];
  #isSending = false;
  #isClosed = false;
  #wake: (() => void) | undefined;
  #whenIdle: (() => void)[] = [];
  delivered = 0;
  failed = 0;
  dropped = 0;

  /** Throws `invalid_option` for anything but an http or https address. */
  constructor(options: AlertWebhookOptions) {
    this.#options = options;
    this.#poster = new HttpPoster(options.url, options.headers, "alertWebhook");
  }

  add(alert: Alert): void {
    if (this.#isClosed || this.#waiting.length >= (this.#options.maxWaiting ?? 100)) {
      this.dropped += 1;
      return;
    }
    this.#waiting.push(alert);
    if (!this.#isSending) void this.#send();
  }

  /** Gives waiting alerts up to `deadlineMs` to be delivered. */
  async close(deadlineMs: number): Promise<void> {
    if (this.#isSending) {
      let timer: NodeJS.Timeout | undefined;
      const deadline = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, deadlineMs);
      });
      await Promise.race([new Promise<void>((resolve) => this.#whenIdle.push(resolve)), deadline]);
      clearTimeout(timer);
    }
    this.#isClosed = true;
    this.#wake?.();
    this.#poster.close();
  }

  async #send(): Promise<void> {
    this.#isSending = true;
    for (let alert = this.#waiting.shift(); alert !== undefined; alert = this.#waiting.shift()) {
      const body = JSON.stringify(webhookBody(alert, this.#options.modelName));
      if (await this.#post(body)) this.delivered += 1;
      else this.failed += 1;
    }
    this.#isSending = false;
    for (const resolve of this.#whenIdle.splice(0)) resolve();
  }

  async #post(body: string): Promise<boolean> {
    let problem = "";
    for (let attempt = 0; attempt < tries && !this.#isClosed; attempt += 1) {
      if (attempt > 0) await this.#pause((this.#options.retryMs ?? 1000) * 2 ** (attempt - 1));
      try {
        const { status } = await this.#poster.post(body, timeoutMs);
        if (status >= 200 && status < 300) return true;
        problem = `it answered ${status}`;
        // a refusal is final, except from a busy receiver
        if (status >= 400 && status < 500 && status !== 408 && status !== 429) break;
      } catch (thrown) {
        problem = thrown instanceof Error ? thrown.message : String(thrown);
      }
    }
    this.#options.onProblem?.(`an alert could not be delivered to ${this.#poster.url}: ${problem}`);
    return false;
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      timer.unref();
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** Source: Prometheus' documentation of Alertmanager's `webhook_config`. */
function webhookBody(alert: Alert, modelName: string): object {
  const labels = {
    alertname: `Octavo_${alert.detector}`,
    detector: alert.detector,
    form: alert.form,
    reason: alert.reason,
    model_name: modelName,
    ...(alert.tenant === undefined ? {} : { tenant: alert.tenant }),
  };
  const annotations = {
    summary: alertText(alert),
    value: String(alert.value),
    threshold: String(alert.threshold),
    samples: String(alert.samples),
    reasons: alert.reasons.map(({ reason, share }) => `${reason} ${(100 * share).toFixed(0)} %`).join(", "),
    ...(alert.baseline === undefined ? {} : { baseline: String(alert.baseline) }),
    ...(alert.evidence === undefined ? {} : { evidence: alert.evidence.toPrecision(3) }),
    ...(alert.example === undefined ? {} : { example_request_id: alert.example.requestId }),
    ...(alert.example === undefined || alert.example.culprits.length === 0
      ? {}
      : { culprit_request_ids: alert.example.culprits.map(({ requestId }) => requestId).join(", ") }),
  };
  const endsAt =
    alert.endsAtMs === undefined ? "0001-01-01T00:00:00Z" : new Date(alert.endsAtMs).toISOString();
  return {
    version: "4",
    groupKey: `{}:{alertname="${labels.alertname}"}`,
    truncatedAlerts: 0,
    status: alert.status,
    receiver: "octavo",
    groupLabels: { alertname: labels.alertname },
    commonLabels: labels,
    commonAnnotations: annotations,
    externalURL: "",
    alerts: [
      {
        status: alert.status,
        labels,
        annotations,
        startsAt: new Date(alert.startsAtMs).toISOString(),
        endsAt,
        generatorURL: "",
        fingerprint: `${alert.detector}/${alert.form}/${alert.tenant ?? ""}`,
      },
    ],
  };
}
