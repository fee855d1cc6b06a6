import { escapeHtml } from "../escape.js";

export interface Drawing {
  readonly height: number;
  /** SVG. */
  readonly content: string;
}

/** Pixels across a chart: on wide screens and paper, and on the screen of a telephone, which shows its 340 px as they are. */
export const chartWidths = { wide: 760, narrow: 340 } as const;

export interface ChartFrame {
  readonly title: string;
  /** Is called once for each width; style sheets show the drawing that fits. */
  readonly draw: (width: number) => Drawing;
  /** Of a chart that has one size for all screens. */
  readonly width?: number;
  /** `list` where its groups are items that take the focus, `img` with a `label` where it is one picture. */
  readonly role: "list" | "img";
  readonly label?: string;
  readonly caption?: string | undefined;
  /** HTML below the picture, such as the keys of its lines. */
  readonly below?: string;
}

/** A picture with its title. */
export function chartFrame({
  title,
  draw,
  width: only,
  role,
  label,
  caption,
  below = "",
}: ChartFrame): string {
  const aria = escapeHtml(label === undefined ? title : `${title}: ${label}`);
  const note = caption === undefined ? "" : `<p class="note">${escapeHtml(caption)}</p>`;
  const svg = (className: string, width: number): string => {
    const { height, content } = draw(width);
    return `<svg class="${className}" viewBox="0 0 ${width} ${Math.ceil(height)}" width="${width}" role="${role}" aria-label="${aria}">${content}</svg>`;
  };
  const drawn =
    only === undefined
      ? Object.entries(chartWidths).map(([className, width]) => svg(className, width))
      : [svg("any", only)];
  return (
    `<figure><figcaption>${escapeHtml(title)}</figcaption><div class="scroll" tabindex="0" role="region" aria-label="${escapeHtml(title)}">` +
    `${drawn.join("")}</div>${below}${note}</figure>`
  );
}

/** An item of a chart of role `list`: takes the keyboard's focus and says its figures. */
export function focusRow(className: string, label: string, content: string): string {
  const said = escapeHtml(label);
  return `<g class="${className}" tabindex="0" role="listitem" aria-label="${said}"><title>${said}</title>${content}</g>`;
}
