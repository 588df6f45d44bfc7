WITH ending AS MATERIALIZED (SELECT min(seq) AS last FROM (SELECT seq,
    sum(octet_length(card) + {figures}) OVER (ORDER BY seq DESC ROWS UNBOUNDED PRECEDING) AS bytes
    FROM (SELECT seq, card FROM listings WHERE {shown} ORDER BY seq DESC LIMIT {most}))
  WHERE bytes <= {most_bytes})
SELECT CASE WHEN min(seq) = last AND EXISTS (SELECT 1 FROM listings WHERE {shown} AND seq < last)
  THEN '+ ' ELSE '- ' END || group_concat(item, char(30) ORDER BY seq DESC)
FROM (SELECT seq, last, {item} AS item FROM ending CROSS JOIN {listings} WHERE {shown} AND seq >= last)
GROUP BY seq / {chunk} ORDER BY min(seq) DESC
