// Formats figures for printing.

export function table(title: string, rows: Iterable<readonly [name: string, value: unknown]>): void {
  console.log(`\n${title}`);
  for (const [name, value] of rows) console.log(`  ${String(value).padStart(16)}  ${name}`);
}
