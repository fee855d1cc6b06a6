/** Dollars, and tokens of a request of the planned shape. */
interface CostInput {
  readonly dollarsPerHour: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly prefillTokensPerSecond: number;
  readonly decodeTokensPerSecond: number;
}

export interface Cost {
  /** Machine time of one request when its steps are shared as planned. */
  readonly secondsPerRequest: number;
  readonly dollarsPerMillionInput: number;
  readonly dollarsPerMillionOutput: number;
  readonly dollarsPerRequest: number;
}

export interface TokenPrice {
  readonly dollarsPerMillionInput: number;
  readonly dollarsPerMillionOutput: number;
}

/** Where renting the machine for whole months costs what the API would. */
export interface Crossing {
  readonly apiDollarsPerRequest: number;
  /** Requests per month at which the bills are equal; undefined for an API that costs nothing. */
  readonly requestsPerMonth: number | undefined;
  /** Prompt and output tokens of those requests. */
  readonly tokensPerMonth: number | undefined;
  /** Share of the machine's month that they take; above 1 the machine cannot serve them, and the API stays cheaper. */
  readonly utilization: number | undefined;
}

/** 365.25 / 12 days. */
const hoursPerMonth = 730.5;

/** The machine always works: prompts and outputs take turns, each at its own speed. */
export function costOf(input: CostInput): Cost {
  const { dollarsPerHour, promptTokens, outputTokens, prefillTokensPerSecond, decodeTokensPerSecond } = input;
  const dollarsPerSecond = dollarsPerHour / 3600;
  const secondsPerRequest = promptTokens / prefillTokensPerSecond + outputTokens / decodeTokensPerSecond;
  return {
    secondsPerRequest,
    dollarsPerMillionInput: (dollarsPerSecond / prefillTokensPerSecond) * 1e6,
    dollarsPerMillionOutput: (dollarsPerSecond / decodeTokensPerSecond) * 1e6,
    dollarsPerRequest: dollarsPerSecond * secondsPerRequest,
  };
}

export function crossingOf(input: CostInput, cost: Cost, price: TokenPrice): Crossing {
  const { promptTokens, outputTokens, dollarsPerHour } = input;
  const apiDollarsPerRequest =
    (promptTokens * price.dollarsPerMillionInput + outputTokens * price.dollarsPerMillionOutput) / 1e6;
  if (apiDollarsPerRequest === 0) {
    return {
      apiDollarsPerRequest,
      requestsPerMonth: undefined,
      tokensPerMonth: undefined,
      utilization: undefined,
    };
  }
  const requestsPerMonth = (dollarsPerHour * hoursPerMonth) / apiDollarsPerRequest;
  return {
    apiDollarsPerRequest,
    requestsPerMonth,
    tokensPerMonth: requestsPerMonth * (promptTokens + outputTokens),
    utilization: (requestsPerMonth * cost.secondsPerRequest) / (hoursPerMonth * 3600),
  };
}
