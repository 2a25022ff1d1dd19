-- +goose Up

-- The title that a conversation was given. Without one its first question is it.
ALTER TABLE conversation ADD COLUMN title text NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE conversation DROP COLUMN title;
