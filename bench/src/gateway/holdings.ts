/** What a gateway process holds at one moment. */
export interface Holdings {
  /** After a full collection. */
  readonly heapMiB: number;
  readonly residentMiB: number;
  readonly sockets: number;
  readonly timers: number;
  /** Calls under way, and attempts at targets. */
  readonly calls: number;
  readonly outstanding: number;
  /** Nanodollars that are set aside for calls. */
  readonly reserved: number;
}
