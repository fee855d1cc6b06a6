import { OctavoError } from "@octavo/protocol";
import type { ReplicaSpec } from "../drivers/replica-driver.js";
import { identify, isHealthy, type ReplicaIdentity } from "./replica-identity.js";

/** Ray's threshold. */
const maxFailures = 3;
const askAgainMs = 100;

export interface ReplicaVerdicts {
  /** Healthy for the first time, and who it is. */
  readonly onIdentified: (replica: ManagedReplica, identity: ReplicaIdentity) => void;
  /** It is to be replaced. */
  readonly onRejected: (replica: ManagedReplica, reason: string) => void;
}

/** Follows one replica that listens: until it is healthy, then with Ray Serve's period, timeout and number of failures. */
export class ManagedReplica {
  readonly id: string;
  readonly url: string;
  readonly version: string;
  identity: ReplicaIdentity | undefined;
  readonly #spec: ReplicaSpec;
  readonly #verdicts: ReplicaVerdicts;
  readonly #startedMs = performance.now();
  #timer: NodeJS.Timeout | undefined;
  #failures = 0;
  #isClosed = false;

  constructor(id: string, url: string, spec: ReplicaSpec, verdicts: ReplicaVerdicts) {
    this.id = id;
    this.url = url;
    this.version = spec.version;
    this.#spec = spec;
    this.#verdicts = verdicts;
    void this.#check();
  }

  /** Asks again who it is. Throws where it does not say. */
  identify(): Promise<ReplicaIdentity> {
    const { deployment } = this.#spec;
    return identify(
      this.url,
      deployment.model_loading_config.model_id,
      deployment.health_check_timeout_s * 1000,
    );
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  async #check(): Promise<void> {
    const { health_check_period_s, health_check_timeout_s, startup_timeout_s } = this.#spec.deployment;
    const isOk = await isHealthy(this.url, health_check_timeout_s * 1000);
    if (this.#isClosed) return;
    if (isOk) {
      this.#failures = 0;
      if (this.identity === undefined) await this.#meet();
    } else if (this.identity !== undefined) this.#failures += 1;
    if (this.#isClosed) return;
    if (this.#failures >= maxFailures) {
      this.#reject(`${maxFailures} health checks in a row failed`);
      return;
    }
    if (this.identity === undefined && performance.now() - this.#startedMs > startup_timeout_s * 1000) {
      this.#reject(`not healthy within ${startup_timeout_s} s`);
      return;
    }
    const waitMs = this.identity === undefined ? askAgainMs : health_check_period_s * 1000;
    this.#timer = setTimeout(() => void this.#check(), waitMs);
  }

  async #meet(): Promise<void> {
    try {
      const identity = await this.identify();
      if (this.#isClosed) return;
      this.identity = identity;
      this.#verdicts.onIdentified(this, identity);
    } catch (thrown) {
      if (!this.#isClosed && !OctavoError.from(thrown).retryable)
        this.#reject(`it does not say who it is: ${OctavoError.from(thrown).message}`);
    }
  }

  #reject(reason: string): void {
    this.close();
    this.#verdicts.onRejected(this, reason);
  }
}
