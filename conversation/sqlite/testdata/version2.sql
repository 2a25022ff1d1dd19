PRAGMA journal_mode = WAL;
CREATE TABLE conversation (
	id      TEXT PRIMARY KEY,
	owner   TEXT NOT NULL,
	created INTEGER NOT NULL,
	changed INTEGER NOT NULL,
	turns   INTEGER NOT NULL,
	state   TEXT NOT NULL DEFAULT '{}',
	claim   TEXT,
	expires INTEGER,
	open    TEXT
);
CREATE INDEX conversation_changed ON conversation (changed);
CREATE INDEX conversation_owner ON conversation (owner);
CREATE TABLE turn (
	conversation TEXT NOT NULL REFERENCES conversation (id) ON DELETE CASCADE,
	number       INTEGER NOT NULL,
	key          TEXT,
	body         TEXT NOT NULL,
	detail       TEXT,
	UNIQUE (conversation, number),
	UNIQUE (conversation, key)
);
CREATE TABLE asked (
	conversation TEXT NOT NULL REFERENCES conversation (id) ON DELETE CASCADE,
	id           TEXT NOT NULL,
	number       INTEGER NOT NULL,
	body         TEXT NOT NULL,
	UNIQUE (conversation, id),
	UNIQUE (conversation, number)
);
PRAGMA application_id = 1634954083;
PRAGMA user_version = 2;
INSERT INTO conversation (id, owner, created, changed, turns) VALUES ('a', '', 1772600767000000, 1772600827000000, 2);
INSERT INTO turn (conversation, number, key, body) VALUES
	('a', 1, NULL, '{"number":1,"at":"2026-03-04T05:06:07Z","text":"How long does it take?","question":"How long does it take?","kind":"clarification","reply":"What is it about?"}'),
	('a', 2, 'k', '{"number":2,"at":"2026-03-04T05:07:07Z","text":"charging","question":"How long does charging take?","kind":"answer","reply":"6 hours","key":"k"}');
