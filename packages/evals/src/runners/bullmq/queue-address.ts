/** Where the queue is, as runner and workers are both told. */
export interface BullMqConnection {
  /** Such as `redis://:password@host:6379/0`; `rediss://` for TLS. */
  readonly redisUrl: string;
  /** Name of the queue; runs of different projects on one Redis take different ones. Default `octavo-evals`. */
  readonly queueName?: string;
  /** In front of every key in Redis. Default `bull`, as BullMQ has it. */
  readonly prefix?: string;
}
