/** Blockfrost's pagination: `count` 1 to 100 (100), `page` from 1, `order` asc or desc; header `unpaged` for everything. */
import type { FastifyRequest } from "fastify";

import { ApiError } from "./errors.ts";

const MAX_COUNT = 100;
const MAX_PAGE = 21_474_836;

export type Page = { readonly count: number; readonly page: number; readonly descending: boolean };

export type Query = { readonly [name: string]: string | undefined };

function whole(query: Query, name: string, fallback: number, most: number): number {
  const text = query[name];
  if (text === undefined) return fallback;
  const value = Number(text);
  if (!/^-?\d+$/.test(text)) throw new ApiError(400, `querystring/${name} must be integer`);
  if (value < 1) throw new ApiError(400, `querystring/${name} must be >= 1`);
  if (value > most) throw new ApiError(400, `querystring/${name} must be <= ${most}`);
  return value;
}

export function pageOf(request: FastifyRequest): Page {
  const query = request.query as Query;
  const order = query.order ?? "asc";
  if (order !== "asc" && order !== "desc") {
    throw new ApiError(400, "querystring/order must be equal to one of the allowed values");
  }
  const count = whole(query, "count", MAX_COUNT, MAX_COUNT);
  const page = whole(query, "page", 1, MAX_PAGE);
  const unpaged = request.headers.unpaged !== undefined && request.headers.unpaged !== "false";
  return { count: unpaged ? Number.MAX_SAFE_INTEGER : count, page, descending: order === "desc" };
}

/** Returns a page of a sequence. */
export function slice<T>(all: readonly T[], { count, page, descending }: Page): T[] {
  const from = (page - 1) * count;
  const part = descending
    ? all.slice(Math.max(0, all.length - from - count), Math.max(0, all.length - from))
    : all.slice(from, from + count);
  return descending ? part.reverse() : part;
}
