// A realistic catalogue, whose titles and descriptions have common and rare words.
import { bech32 } from "@scure/base";
import type { Bench } from "./runtime.ts";

const SELLERS = 50;
const WORDS = 400;
const COLUMNS =
  "id, card, title, description, price_lovelace, seller_address, instant, protected, content_hash, content_bytes, category, created_at_ms";

/** Returns the nth word: the first ones are in many listings, the last ones in few. */
export const word = (n: number): string =>
  `${"bcdfghjklm"[n % 10]}${"aeiou"[n % 5]}${"nprstvwxyz"[Math.floor(n / 10) % 10]}${n}`;

/** Yields the same random numbers from 0 to 1 in each run. */
function chances(): () => number {
  let state = 1;
  return () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return state / 0x80000000;
  };
}

export const addressOf = (seller: number): string =>
  bech32.encode("addr_test", bech32.toWords(Uint8Array.of(0x60, ...new Uint8Array(28).fill(seller + 1))), false);

/** Returns the id of a listing by its number. */
export const idOf = (n: number): string => `lst_01${String(n).padStart(24, "0")}`;

/** Adds listings by their numbers; each has one payment mode, every tenth both. */
export async function fill({ database }: Bench, from: number, to: number): Promise<void> {
  const chance = chances();
  const text = (words: number) =>
    Array.from({ length: words }, () => word(Math.floor(chance() ** 2 * WORDS))).join(" ");
  const insert = database.prepare(
    `INSERT INTO listings (${COLUMNS}) SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
       json_extract(value, '$[3]'), json_extract(value, '$[4]'), json_extract(value, '$[5]'), 1, json_extract(value, '$[6]'),
       json_extract(value, '$[7]'), 1000, 'Hero', json_extract(value, '$[8]') FROM json_each(?1)`,
  );
  for (let start = from; start < to; start += 200) {
    const rows = Array.from({ length: Math.min(200, to - start) }, (_, i) => {
      const n = start + i;
      const [title, description, seller] = [text(5), text(40), addressOf(n % SELLERS)];
      const both = n % 10 === 0;
      const price = 5_000_000 + 1_000 * n;
      const contentHash = n.toString(16).padStart(64, "0");
      const card = {
        id: idOf(n),
        title,
        description,
        priceLovelace: `${price}`,
        sellerAddress: seller,
        modes: both ? ["instant", "protected"] : ["instant"],
        contentHash,
        category: "Hero",
        createdAt: new Date(1_760_000_000_000 + n * 1_000).toISOString(),
      };
      return [card.id, JSON.stringify(card), title, description, price, seller, both ? 1 : 0, contentHash, n];
    });
    await insert.bind(JSON.stringify(rows)).run();
  }
  await database
    .prepare("UPDATE sellers SET sales = length(address), withdrawn = 3, refunded = 1 WHERE withdrawn = 0")
    .run();
}
