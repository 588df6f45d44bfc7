WITH sized AS MATERIALIZED (SELECT seq AS which, octet_length(card) + {figures} AS bytes,
    sum(octet_length(card) + {figures}) OVER (ORDER BY seq DESC ROWS UNBOUNDED PRECEDING) AS so_far,
    row_number() OVER (ORDER BY seq DESC) AS place
    FROM (SELECT seq, card FROM listings WHERE {shown} ORDER BY seq DESC LIMIT {most} + 1))
SELECT seq, {listing} AS json, so_far <= {most_bytes} AND place <= {most} AS fits
FROM sized CROSS JOIN {listings} WHERE seq = which AND so_far - bytes <= {most_bytes} ORDER BY which DESC
