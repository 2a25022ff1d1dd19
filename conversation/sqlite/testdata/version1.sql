PRAGMA journal_mode = WAL;
CREATE TABLE conversation (
	id      TEXT PRIMARY KEY,
	changed INTEGER NOT NULL,
	pending TEXT,
	asked   TEXT
);
CREATE INDEX conversation_changed ON conversation (changed);
CREATE TABLE turn (
	conversation TEXT    NOT NULL REFERENCES conversation (id) ON DELETE CASCADE,
	number       INTEGER NOT NULL,
	body         TEXT    NOT NULL,
	UNIQUE (conversation, number)
);
CREATE TABLE claim (
	conversation TEXT PRIMARY KEY,
	owner        TEXT    NOT NULL,
	expires      INTEGER NOT NULL
);
PRAGMA application_id = 1634954083;
PRAGMA user_version = 1;
INSERT INTO conversation VALUES
	('a', 2, '{"id":"c2","gate":"post","question":"What is the deposit?","text":"Which bike?","asked":1,"since":2}',
		'[{"id":"c1","gate":"post","question":"How long?","text":"Which?","options":[{"id":"1","text":"Cargo 2","passages":null},{"id":"2","text":"City 2","passages":null}],"asked":1,"since":1},{"id":"c2","gate":"post","question":"What is the deposit?","text":"Which bike?","asked":1,"since":2}]'),
	('b', 3, NULL, NULL);
INSERT INTO turn VALUES
	('a', 1, '{"number":1,"at":"2026-03-04T05:06:07Z","text":"How long?","question":"How long?","kind":"answer","reply":"6 hours","detail":{"score":0.50,"text":"a\u0000<b"}}'),
	('a', 2, '{"number":2,"at":"2026-03-04T05:07:07Z","text":"What is the deposit?","question":"What is the deposit?","kind":"clarification","reply":"Which bike?"}'),
	('b', 1, '{"number":1,"at":"2026-03-04T05:08:07Z","text":"hello","question":"hello","kind":"answer","reply":"hi"}');
INSERT INTO claim VALUES ('a', 'x', 0);
