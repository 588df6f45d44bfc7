INSERT INTO purchases (id, listing_id, mode, seller_address, buyer_address, buyer_key, price_lovelace,
  creator_lovelace, status, bought_at_ms)
SELECT p.tx_id, p.listing_id, p.mode, l.seller_address, p.payer, p.payer_key, p.amount_lovelace,
  p.creator_lovelace, ?2, ?3
FROM payments p JOIN outbox o ON o.tx_id = p.tx_id JOIN listings l ON l.id = p.listing_id
WHERE p.tx_id = ?1 AND o.state = 'included' ON CONFLICT (id) DO NOTHING
