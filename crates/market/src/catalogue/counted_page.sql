SELECT seq AS which FROM
  (SELECT block, newer FROM (SELECT block, {own} AS own, sum({own}) OVER (ORDER BY block DESC) - {own} AS newer
    FROM listings_counted) WHERE own > 0 AND newer + own > ?3 AND newer < ?2 + ?3)
CROSS JOIN listings INDEXED BY listings_shown ON seq >= {block} * block AND seq < {block} * (block + 1)
WHERE {condition} ORDER BY seq DESC LIMIT ?2 OFFSET ?3 - coalesce((SELECT max(newer) FROM
  (SELECT sum({own}) OVER (ORDER BY block DESC) - {own} AS newer FROM listings_counted) WHERE newer <= ?3), 0)
