SELECT json_object('purchase', e.purchase_id, 'utxo', e.utxo, 'address', e.address, 'datum', e.datum,
  'locked', CAST(e.locked_lovelace AS TEXT), 'creator', p.seller_address,
  'share', CAST(p.creator_lovelace AS TEXT),
  'spenders', json((SELECT json_group_array(tx_id) FROM reservations WHERE tx_in = e.utxo)))
FROM escrows e JOIN purchases p ON p.id = e.purchase_id
WHERE e.utxo IN (SELECT value FROM json_each(?1))
