import { createHmac } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { FeedState } from "@octavo/optimize";
import { OctavoError } from "@octavo/protocol/errors";
import { option } from "@octavo/protocol/options";
import { HttpPoster } from "@octavo/tracing";
import { keyOf } from "../eval/eval-rows.js";

export const webhookRows = {
  webhook: option.text("--webhook <url>", "post changes of clusters' statuses there"),
  webhookSecretEnv: option.text(
    "--webhook-secret-env <name>",
    "environment variable with the secret that signs them",
  ),
};

interface WebhookFlags {
  readonly webhook: string | undefined;
  readonly webhookSecretEnv: string | undefined;
}

/** Tries of one delivery, with twice as long a wait after each. */
const tries = 4;
const firstWaitMs = 250;
const timeoutMs = 10_000;

/**
 * Posts which clusters have another status than before, if any has, to the address that the flag gives and to no other: redirects are
 * not followed. Signed: `x-octavo-signature` is `sha256=` and the HMAC of the timestamp in `x-octavo-timestamp`, a dot and the body.
 * @throws OctavoError `target_unreachable` once the tries are over
 */
export async function announceChanges(
  { webhook, webhookSecretEnv }: WebhookFlags,
  before: FeedState,
  after: FeedState,
): Promise<void> {
  if (webhook === undefined) return;
  const secret = keyOf("webhook-secret-env", webhookSecretEnv);
  const known = new Map(before.entries.map(({ id, status }) => [id, status]));
  const changes = after.entries
    .filter(({ id, status }) => known.get(id) !== status)
    .map(({ id, kind, cause, count, status, proof }) => ({
      id,
      kind,
      cause,
      count,
      from: known.get(id) ?? null,
      to: status,
      ...(proof !== undefined && { proof: proof.verdict }),
    }));
  if (changes.length === 0) return;
  const body = JSON.stringify({ version: 1, changes });
  const timestamp = String(Math.floor(Date.now() / 1000));
  const signature = (key: string): string =>
    `sha256=${createHmac("sha256", key).update(`${timestamp}.${body}`).digest("hex")}`;
  const headers = {
    "x-octavo-timestamp": timestamp,
    ...(secret !== undefined && { "x-octavo-signature": signature(secret) }),
  };
  const poster = new HttpPoster(webhook, headers, "webhook");
  try {
    await deliver(poster, body);
  } finally {
    poster.close();
  }
}

async function deliver(poster: HttpPoster, body: string): Promise<void> {
  let problem = "";
  for (let attempt = 0; attempt < tries; attempt++) {
    if (attempt > 0) await sleep(firstWaitMs * 2 ** (attempt - 1));
    try {
      const { status } = await poster.post(body, timeoutMs);
      if (status >= 200 && status < 300) return;
      problem = `it answered ${status}`;
      // what is wrong with the request stays wrong
      if (status < 500 && status !== 429 && status !== 408) break;
    } catch (thrown) {
      problem = OctavoError.from(thrown).message;
    }
  }
  throw new OctavoError(
    "target_unreachable",
    `the feed was brought up to date, but --webhook ${poster.url} was not told: ${problem}`,
    { param: "webhook" },
  );
}
