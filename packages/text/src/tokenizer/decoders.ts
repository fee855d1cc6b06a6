import { byteOfFallbackToken, characterOfByte, fromByteAlphabet } from "./byte-alphabet.js";
import { createReplacer } from "./replacer.js";
import type { DecoderSpecification } from "./specification.js";
import { Utf8Stream } from "./utf8-stream.js";

/**
 * One step of decoding as a stream. Before a fusing step each `push` is one token; after it, pushes are fragments of
 * the single token that the reference would see there. `end` comes once.
 */
export interface DecodeStage {
  push(text: string): void;
  end(): void;
}

type Step = Exclude<DecoderSpecification, { kind: "sequence" }>;

/** Builds the chain of decoding steps in front of `last`; without a decoder tokens are joined by spaces. */
export function createDecodeChain(
  specification: DecoderSpecification | undefined,
  last: DecodeStage,
): DecodeStage {
  if (specification === undefined)
    return mapTokens(last, (token, index) => (index === 0 ? token : ` ${token}`));
  const steps = flatten(specification);
  const fusing = steps.map((step) => step.kind === "fuse" || step.kind === "byte-level");
  return steps.reduceRight<DecodeStage>((next, step, index) => {
    const isFused = fusing.slice(0, index).includes(true);
    return isFused ? createFusedStage(step, next) : createTokenStage(step, next);
  }, last);
}

function flatten(specification: DecoderSpecification): Step[] {
  return specification.kind === "sequence" ? specification.items.flatMap(flatten) : [specification];
}

function createTokenStage(step: Step, next: DecodeStage): DecodeStage {
  switch (step.kind) {
    case "byte-level":
      return byteLevel(next);
    case "byte-fallback":
      return byteFallback(next);
    case "fuse":
      return next;
    case "strip":
      return mapTokens(next, (token) => stripToken(token, step.content, step.start, step.stop));
    case "replace": {
      const replace = createReplacer(step.pattern, step.content);
      return mapTokens(next, replace);
    }
    case "metaspace":
      return mapTokens(next, (token, index) =>
        token.replaceAll(step.replacement, index === 0 && step.prepend !== "never" ? "" : " "),
      );
    case "bpe":
      return endOfWord(step.suffix, next);
    case "word-piece":
      return mapTokens(next, (token, index) => {
        const text =
          index === 0 ? token : token.startsWith(step.prefix) ? token.slice(step.prefix.length) : ` ${token}`;
        return step.cleansUp ? withoutSpaces(text) : text;
      });
  }
}

/** Steps after a fusing one see a single token; those that can work on its fragments do, others wait for its end. */
function createFusedStage(step: Step, next: DecodeStage): DecodeStage {
  if (step.kind === "fuse") return next;
  if (step.kind === "strip") return stripFragments(step.content, step.start, step.stop, next);
  if (step.kind === "replace" && "literal" in step.pattern && step.pattern.literal.length === 1)
    return createTokenStage(step, next);
  const whole = createTokenStage(step, next);
  let text = "";
  return {
    push: (fragment) => {
      text += fragment;
    },
    end: () => {
      whole.push(text);
      whole.end();
    },
  };
}

function mapTokens(next: DecodeStage, map: (token: string, index: number) => string): DecodeStage {
  let index = 0;
  return { push: (token) => next.push(map(token, index++)), end: () => next.end() };
}

function byteLevel(next: DecodeStage): DecodeStage {
  const stream = new Utf8Stream();
  return {
    push: (token) => {
      const plain = stream.isHolding ? undefined : asciiOf(token);
      next.push(plain ?? stream.push(fromByteAlphabet(token)));
    },
    end: () => {
      next.push(stream.flush());
      next.end();
    },
  };
}

const asciiCharacterOf: readonly (string | undefined)[] = Array.from({ length: 0x200 }, (_, code) => {
  const byte = characterOfByte.indexOf(String.fromCharCode(code));
  return byte >= 0 && byte < 0x80 ? String.fromCharCode(byte) : undefined;
});

/** The text of a token whose bytes are all ASCII, else undefined. */
function asciiOf(token: string): string | undefined {
  let text = "";
  for (let index = 0; index < token.length; index++) {
    const character = asciiCharacterOf[token.charCodeAt(index)];
    if (character === undefined) return undefined;
    text += character;
  }
  return text;
}

const strictDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** A run of byte tokens is text when all of it is valid UTF-8, and otherwise one U+FFFD per byte; so a run is held. */
function byteFallback(next: DecodeStage): DecodeStage {
  let run: number[] = [];
  const flush = (): void => {
    if (run.length === 0) return;
    const bytes = Uint8Array.from(run);
    run = [];
    let text: string;
    try {
      text = strictDecoder.decode(bytes);
    } catch {
      for (let count = 0; count < bytes.length; count++) next.push("\ufffd");
      return;
    }
    next.push(text);
  };
  return {
    push: (token) => {
      const byte = byteOfFallbackToken(token);
      if (byte !== undefined) {
        run.push(byte);
        return;
      }
      flush();
      next.push(token);
    },
    end: () => {
      flush();
      next.end();
    },
  };
}

function stripToken(token: string, content: string, start: number, stop: number): string {
  const characters = Array.from(token);
  let from = 0;
  while (from < Math.min(start, characters.length) && characters[from] === content) from++;
  let to = characters.length;
  while (characters.length - to < stop && to > from && characters[to - 1] === content) to--;
  return characters.slice(from, to).join("");
}

function stripFragments(content: string, start: number, stop: number, next: DecodeStage): DecodeStage {
  let leading = start;
  let held = 0;
  return {
    push: (fragment) => {
      let text = fragment;
      while (leading > 0 && text !== "") {
        if (text.startsWith(content)) {
          text = text.slice(content.length);
          leading--;
        } else leading = 0;
      }
      if (text === "") return;
      text = content.repeat(held) + text;
      held = 0;
      while (held < stop && text.endsWith(content)) {
        text = text.slice(0, text.length - content.length);
        held++;
      }
      next.push(text);
    },
    end: () => next.end(),
  };
}

const spaced = /( [.?!,])|( ' )|( n't)|( 'm)|( do not)|( 's)|( 've)|( 're)/g;

/** As Hugging Face's WordPiece decoder cleans each token up. */
function withoutSpaces(text: string): string {
  return text.replaceAll(spaced, (match) =>
    match === " ' " ? "'" : match === " do not" ? " don't" : match.slice(1),
  );
}

/** The suffix means a space, except in the last token; so one token is held. */
function endOfWord(suffix: string, next: DecodeStage): DecodeStage {
  let held: string | undefined;
  const flush = (space: string): void => {
    if (held !== undefined) next.push(suffix === "" ? held : held.replaceAll(suffix, space));
  };
  return {
    push: (token) => {
      flush(" ");
      held = token;
    },
    end: () => {
      flush("");
      next.end();
    },
  };
}
