WITH asked (newest, each) AS MATERIALIZED (SELECT value, {weight} / json_array_length(value)
  FROM json_each(json_array({having}))),
found AS MATERIALIZED (SELECT had.value AS which, sum(each) AS worth
  FROM asked CROSS JOIN json_each(asked.newest) AS had GROUP BY 1 ORDER BY 1 DESC LIMIT {most}),
picked AS MATERIALIZED (SELECT which, worth FROM found
  CROSS JOIN listings INDEXED BY listings_shown ON seq = which {sellers} WHERE {condition}
  ORDER BY worth DESC, which DESC LIMIT {limit} OFFSET {offset})
SELECT {listing} FROM picked CROSS JOIN listings ON seq = which
LEFT JOIN sellers ON sellers.address = listings.seller_address ORDER BY worth DESC, which DESC
