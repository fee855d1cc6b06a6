/** A machine, how many replicas it has and how many of them compute. */
export interface SimulatedHost {
  numReplicas: number;
  numBusy: number;
}

/** Machines that take so many replicas each, filled one after the other. */
export class SimulatedHosts {
  readonly #hosts: SimulatedHost[] = [];
  readonly #perHost: number;

  constructor(perHost: number) {
    this.#perHost = perHost;
  }

  /** Where the next replica runs. */
  place(): SimulatedHost {
    let host = this.#hosts.find(({ numReplicas }) => numReplicas < this.#perHost);
    if (host === undefined) this.#hosts.push((host = { numReplicas: 0, numBusy: 0 }));
    host.numReplicas += 1;
    return host;
  }
}
