/** A terminal's screen as SVG: text with the program's colours, in the reader's font. */

const COLOURS: Readonly<Record<string, string>> = { "31": "#f0857e", "32": "#63c294", "33": "#dfa94f" };
const ESCAPE = "\u001b[";
const CELL = { width: 8.4, height: 19 } as const;
const MARGIN = 16;

interface Style {
  readonly colour?: string;
  readonly isBold?: boolean;
  readonly isDim?: boolean;
}

export function screenAsSvg(screen: string, columns: number): string {
  const lines = screen.trimEnd().split("\n");
  const width = Math.round(columns * CELL.width + 2 * MARGIN);
  const height = Math.round(lines.length * CELL.height + 2 * MARGIN);
  let style: Style = {};
  const rows = lines.map((line, row) => {
    const spans: string[] = [];
    for (const [index, part] of line.split(ESCAPE).entries()) {
      const [, codes, text = ""] = /^(?:([0-9;]*)m)?(.*)$/s.exec(part) ?? [];
      if (index === 0) {
        if (part !== "") spans.push(span(part, style));
        continue;
      }
      if (codes !== undefined) style = styled(style, codes);
      if (text !== "") spans.push(span(text, style));
    }
    return `<text x="${MARGIN}" y="${MARGIN + (row + 0.75) * CELL.height}" xml:space="preserve">${spans.join("")}</text>`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="Terminal session: unghost scan and unghost heal">`,
    `<rect width="100%" height="100%" rx="8" fill="#0d1013"/>`,
    `<g font-family="ui-monospace, SF Mono, DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14" fill="#d3d9df">`,
    ...rows,
    "</g>",
    "</svg>",
    "",
  ].join("\n");
}

function span(text: string, style: Style): string {
  return `<tspan${attributes(style)}>${escaped(text)}</tspan>`;
}

function styled(before: Style, codes: string): Style {
  return codes.split(";").reduce<Style>((style, code) => {
    if (code === "" || code === "0") return {};
    if (code === "1") return { ...style, isBold: true };
    if (code === "2") return { ...style, isDim: true };
    const colour = COLOURS[code];
    if (colour !== undefined) return { ...style, colour };
    if (code === "39") return withoutColour(style);
    return code === "22" ? { ...style, isBold: false, isDim: false } : style;
  }, before);
}

function withoutColour({ colour: _colour, ...style }: Style): Style {
  return style;
}

function attributes({ colour, isBold = false, isDim = false }: Style): string {
  const fill = colour ?? (isDim ? "#98a2ad" : undefined);
  return `${fill === undefined ? "" : ` fill="${fill}"`}${isBold ? ' font-weight="700"' : ""}`;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
