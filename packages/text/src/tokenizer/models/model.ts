import type { TokenSink } from "../token-sink.js";

/** The part of a tokenizer that turns one piece of prepared text into ids. */
export interface SubwordModel {
  /** Appends the ids of a piece; the piece is well-formed UTF-16 and not empty. */
  encodePiece(piece: string, sink: TokenSink): void;
}
