/** Bodies of the control API, parsed with errors that name the field. */
import { ApiError } from "./errors.ts";

export type Fields = { readonly [name: string]: unknown };

/** Reads an object. An absent body counts as `{}`, because every field has a default or its own error. */
export function object(body: unknown): Fields {
  if (body === undefined || body === null) return {};
  if (typeof body !== "object" || Array.isArray(body)) throw new ApiError(400, "the body must be a JSON object");
  return body as Fields;
}

export function integer(body: Fields, name: string, fallback: number | undefined, least: number, most: number): number {
  const value = body[name] ?? fallback;
  if (typeof value !== "number" || !Number.isInteger(value) || value < least || value > most) {
    throw new ApiError(400, `${name} must be an integer from ${least} to ${most}`);
  }
  return value;
}

export function boolean(body: Fields, name: string, fallback: boolean): boolean {
  const value = body[name] ?? fallback;
  if (typeof value !== "boolean") throw new ApiError(400, `${name} must be true or false`);
  return value;
}

export function optionalText(body: Fields, name: string): string | undefined {
  const value = body[name];
  if (value !== undefined && typeof value !== "string") throw new ApiError(400, `${name} must be a string`);
  return value;
}

/** Lovelace as a decimal string, or a JSON number where that is exact. */
export function lovelaceField(value: unknown): bigint {
  if (typeof value === "number" && Number.isSafeInteger(value) && value > 0) return BigInt(value);
  if (typeof value === "string" && /^[1-9]\d{0,16}$/.test(value)) return BigInt(value);
  throw new ApiError(400, "lovelace must be a positive integer, as a decimal string or a number");
}

/** Quantities by asset name in hex. */
export function tokens(value: unknown): Map<string, bigint> {
  const entries = Object.entries(object(value)).map(([name, quantity]) => {
    if (!/^(?:[0-9a-f]{2}){0,32}$/.test(name)) throw new ApiError(400, "tokens must be named in hex, 32 bytes at most");
    return [name, lovelaceField(quantity)] as const;
  });
  return new Map(entries);
}
