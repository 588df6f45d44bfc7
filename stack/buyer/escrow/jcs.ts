// RFC 8785. It uses ECMAScript's serialization of numbers and strings, so only members have to be sorted.

export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json };

const isArray = (value: Json): value is readonly Json[] => Array.isArray(value);

export function jcs(value: Json): string {
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (isArray(value)) return `[${value.map(jcs).join(",")}]`;
  const members = Object.keys(value)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${jcs(value[name] as Json)}`);
  return `{${members.join(",")}}`;
}
