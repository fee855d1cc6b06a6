interface FencedBlock {
  /** In lower case; empty where none is given. */
  readonly language: string;
  readonly code: string;
}

/** Code blocks of a Markdown text; one that is never closed goes to the end. */
export function fencedBlocks(text: string): FencedBlock[] {
  const blocks: FencedBlock[] = [];
  let open: { fence: string; language: string; lines: string[] } | undefined;
  const close = (): void => {
    if (open !== undefined) blocks.push({ language: open.language, code: open.lines.join("\n") });
    open = undefined;
  };
  for (const line of text.split(/\r?\n/)) {
    const fence = /^ {0,3}(`{3,}|~{3,})[ \t]*([^\s`]*)/.exec(line);
    if (open === undefined) {
      if (fence !== null) open = { fence: fence[1]!, language: fence[2]!.toLowerCase(), lines: [] };
    } else if (isClosing(line, open.fence)) close();
    else open.lines.push(line);
  }
  close();
  return blocks;
}

function isClosing(line: string, fence: string): boolean {
  const text = line.trim();
  return text.length >= fence.length && text === fence[0]!.repeat(text.length);
}
