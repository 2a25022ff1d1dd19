-- Makes an empty file into a store of conversations. Values of Go are kept as
-- their JSON, so that a NUL byte in a text is no special case; times are
-- microseconds since 1970.
CREATE TABLE conversation (
	id      TEXT PRIMARY KEY,
	owner   TEXT NOT NULL,              -- the user; empty if nobody in particular
	created INTEGER NOT NULL,
	changed INTEGER NOT NULL,           -- when the last turn was stored
	turns   INTEGER NOT NULL,           -- how many there are
	state   TEXT NOT NULL DEFAULT '{}', -- conversation.State
	claim   TEXT,                       -- names the claim that holds the next turn, or null
	expires INTEGER,                    -- when that claim runs out
	open    TEXT,                       -- conversation.Turn, the one that runs
	title   TEXT NOT NULL DEFAULT ''    -- that the conversation was given
);
CREATE INDEX conversation_changed ON conversation (changed);
CREATE INDEX conversation_owner ON conversation (owner);
CREATE TABLE turn (
	conversation TEXT NOT NULL REFERENCES conversation (id) ON DELETE CASCADE,
	number       INTEGER NOT NULL,      -- from 1, without gaps
	key          TEXT,                  -- of the message, or null
	body         TEXT NOT NULL,         -- conversation.Turn without its detail
	detail       TEXT,                  -- Turn.Detail, or null
	UNIQUE (conversation, number),
	UNIQUE (conversation, key)
);
CREATE TABLE asked (
	conversation TEXT NOT NULL REFERENCES conversation (id) ON DELETE CASCADE,
	id           TEXT NOT NULL,
	number       INTEGER NOT NULL,      -- their order
	body         TEXT NOT NULL,         -- conversation.Pending
	UNIQUE (conversation, id),
	UNIQUE (conversation, number)
);
