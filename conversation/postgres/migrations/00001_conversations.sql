-- +goose Up

-- Values of Go are kept as their JSON in text, not in jsonb, which refuses a NUL
-- byte in a string. Times are microseconds since 1970 by the database's clock.
-- Ids are compared and sorted byte by byte.
CREATE TABLE conversation (
	id      text COLLATE "C" PRIMARY KEY,
	owner   text COLLATE "C" NOT NULL,   -- the user; empty if nobody in particular
	created bigint NOT NULL,
	changed bigint NOT NULL,             -- when the last turn was stored
	turns   integer NOT NULL,            -- how many there are
	state   text NOT NULL DEFAULT '{}',  -- conversation.State
	claim   text,                        -- names the claim that holds the next turn, or null
	expires bigint,                      -- when that claim runs out
	open    text                         -- conversation.Turn, the one that runs
);
CREATE INDEX conversation_changed ON conversation (changed);
CREATE INDEX conversation_owner ON conversation (owner);
CREATE TABLE turn (
	conversation text COLLATE "C" NOT NULL REFERENCES conversation (id) ON DELETE CASCADE,
	number       integer NOT NULL,       -- from 1, without gaps
	key          text COLLATE "C",       -- of the message, or null
	body         text NOT NULL,          -- conversation.Turn without its detail
	detail       text,                   -- Turn.Detail, or null
	PRIMARY KEY (conversation, number),
	UNIQUE (conversation, key)
);
CREATE TABLE asked (
	conversation text COLLATE "C" NOT NULL REFERENCES conversation (id) ON DELETE CASCADE,
	id           text COLLATE "C" NOT NULL,
	number       integer NOT NULL,       -- their order
	body         text NOT NULL,          -- conversation.Pending
	PRIMARY KEY (conversation, id),
	UNIQUE (conversation, number)
);

-- +goose Down
DROP TABLE asked;
DROP TABLE turn;
DROP TABLE conversation;
