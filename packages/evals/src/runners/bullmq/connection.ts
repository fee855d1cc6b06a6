import { OctavoError } from "@octavo/protocol";
import type { Redis } from "ioredis";
import type { BullMqConnection } from "./queue-address.js";

export const defaultQueueName = "octavo-evals";

const connectTimeoutMs = 5000;

/**
 * BullMQ and its Redis client, optional dependencies that users of this runner install.
 * @throws OctavoError `runner_unavailable` when they are not
 */
export async function loadBullMq(): Promise<{
  readonly bullmq: typeof import("bullmq");
  readonly Redis: typeof Redis;
}> {
  try {
    const [bullmq, ioredis] = await Promise.all([import("bullmq"), import("ioredis")]);
    return { bullmq, Redis: ioredis.Redis };
  } catch (cause) {
    throw new OctavoError(
      "runner_unavailable",
      "evaluation on a queue needs BullMQ: npm install bullmq@6 ioredis@6",
      { cause },
    );
  }
}

/**
 * A connection that is known to work. Later breaks are repaired: commands wait until Redis is back.
 * @throws OctavoError `runner_unavailable` when Redis does not answer now, `invalid_option` when the URL is none
 */
export async function connectRedis(
  RedisClient: typeof Redis,
  { redisUrl }: BullMqConnection,
): Promise<Redis> {
  const shown = shownUrl(redisUrl);
  let isConnected = false;
  const redis = new RedisClient(redisUrl, {
    maxRetriesPerRequest: null,
    connectTimeout: connectTimeoutMs,
    lazyConnect: true,
    retryStrategy: (times) => (isConnected ? Math.min(times * 200, 5000) : null),
  });
  // what breaks later is met by the commands that wait for it
  redis.on("error", () => undefined);
  try {
    await redis.connect();
    await redis.ping();
  } catch (cause) {
    redis.disconnect();
    const { message } = OctavoError.from(cause);
    throw new OctavoError(
      "runner_unavailable",
      `Redis at ${shown} does not answer (${message}); start it or name another`,
      { cause },
    );
  }
  isConnected = true;
  return redis;
}

/** The URL as errors show it: without its password. */
function shownUrl(redisUrl: string): string {
  let url: URL;
  try {
    url = new URL(redisUrl);
  } catch (cause) {
    throw new OctavoError("invalid_option", "redisUrl: expected a URL such as redis://127.0.0.1:6379", {
      param: "redisUrl",
      cause,
    });
  }
  if (url.protocol !== "redis:" && url.protocol !== "rediss:") {
    throw new OctavoError(
      "invalid_option",
      `redisUrl: expected a URL such as redis://127.0.0.1:6379, got one of ${url.protocol}`,
      { param: "redisUrl" },
    );
  }
  return `${url.protocol}//${url.host}`;
}
