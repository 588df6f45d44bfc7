SELECT e.purchase_id AS purchase, e.utxo, e.address, e.datum,
  CAST(e.locked_lovelace AS TEXT) AS locked, p.seller_address AS creator,
  CAST(p.creator_lovelace AS TEXT) AS share,
  (SELECT json_group_array(tx_id) FROM reservations WHERE tx_in = e.utxo) AS spenders
FROM escrows e JOIN purchases p ON p.id = e.purchase_id
WHERE e.utxo IN (SELECT value FROM json_each(?1))
