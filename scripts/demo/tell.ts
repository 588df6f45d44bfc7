// Output of the demo.

const colour = process.stdout.isTTY && process.env.NO_COLOR === undefined;
const paint = (code: number, text: string): string => (colour ? `\x1b[${code}m${text}\x1b[0m` : text);
let chapters = 0;

/** Starts the next chapter. */
export const chapter = (title: string): void => console.log(`\n${paint(1, `${++chapters}. ${title}`)}`);
export const heading = (title: string): void => console.log(`\n${paint(1, title)}`);
export const say = (text: string): void => console.log(`  ${text}`);
export const short = (text: string): string => (text.length > 40 ? `${text.slice(0, 22)}...${text.slice(-8)}` : text);

/** Formats lovelace as ADA with all decimals. */
export function tada(lovelace: string | number | bigint): string {
  const amount = BigInt(lovelace);
  const digits = `${amount < 0n ? -amount : amount}`.padStart(7, "0");
  const rest = digits.slice(-6).replace(/0+$/, "");
  return `${amount < 0n ? "-" : ""}${digits.slice(0, -6)}${rest && `.${rest}`} tADA`;
}

/** Prints a table with right-aligned numbers. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): void {
  const all = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...all.map((row) => (row[column] ?? "").length)));
  const right = head.map((_, column) => rows.every((row) => /^-?[\d.]*( tADA)?$/.test(row[column] ?? "")));
  for (const row of all) {
    const cells = head.map((_, column) => {
      const [cell, width] = [row[column] ?? "", widths[column] ?? 0];
      return right[column] ? cell.padStart(width) : cell.padEnd(width);
    });
    say(cells.join("  ").trimEnd());
  }
}
