-- Brings a file of version 1, where a claim was a table and the clarifications
-- one value of their conversation, to the tables of schema.sql.
DROP TABLE claim;
ALTER TABLE turn RENAME TO turn1;
ALTER TABLE conversation RENAME TO conversation1;
DROP INDEX conversation_changed;
@schema@
INSERT INTO conversation (id, owner, created, changed, turns, state)
SELECT id, '', strftime('%s', 'now') * 1000000 + changed, strftime('%s', 'now') * 1000000 + changed,
	(SELECT count(*) FROM turn1 WHERE conversation = id),
	CASE WHEN pending IS NULL THEN '{}' ELSE json_object('pending', json(pending)) END
FROM conversation1;
INSERT INTO turn (conversation, number, body, detail)
SELECT conversation, number, json_remove(body, '$.detail'), json_extract(body, '$.detail') FROM turn1;
INSERT INTO asked (conversation, id, number, body)
SELECT c.id, json_extract(value, '$.id'), key + 1, value FROM conversation1 AS c, json_each(c.asked);
DROP TABLE turn1;
DROP TABLE conversation1;
