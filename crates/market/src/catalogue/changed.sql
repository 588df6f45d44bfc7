WITH changed AS (SELECT seq FROM listings WHERE seq > ?2 AND hidden_at_ms IS NULL
  UNION SELECT seq FROM sellers CROSS JOIN listings INDEXED BY listings_by_seller ON seller_address = address
    WHERE changed > ?1 AND seq BETWEEN ?3 AND ?2 AND hidden_at_ms IS NULL)
SELECT {item} FROM changed CROSS JOIN listings ON listings.seq = changed.seq
LEFT JOIN sellers ON sellers.address = listings.seller_address
ORDER BY listings.seq LIMIT {most} + 1
