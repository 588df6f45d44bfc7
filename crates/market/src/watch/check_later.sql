UPDATE escrows SET next_at_ms = later.value ->> '$.at' FROM json_each(?1) AS later
WHERE purchase_id = later.value ->> '$.purchase' AND utxo = later.value ->> '$.utxo'
AND next_at_ms = later.value ->> '$.read'
AND (SELECT verification FROM purchases WHERE id = later.value ->> '$.purchase')
  IS (later.value ->> '$.verification')
